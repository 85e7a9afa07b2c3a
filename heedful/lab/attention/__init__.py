"""Attention: scores, masks, laws."""
