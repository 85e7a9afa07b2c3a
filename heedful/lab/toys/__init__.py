"""Toy problems that show what attention can and cannot do."""
