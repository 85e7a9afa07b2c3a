"""Positions of tokens."""
