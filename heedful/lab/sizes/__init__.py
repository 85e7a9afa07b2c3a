"""Sizes of models, counted."""
