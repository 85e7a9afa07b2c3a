"""Decoding, step by step."""
