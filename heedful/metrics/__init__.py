"""Scores, by their definitions in the field."""
