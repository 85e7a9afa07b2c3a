"""Scores, with their usual definitions."""
