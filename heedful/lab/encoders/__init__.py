"""Encoders: hidden words first, a task afterwards."""
