"""Decoder-only models: experts and repetition."""
