"""Decoding, watched."""
