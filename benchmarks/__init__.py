"""Measurements beside peers, and figures for the documents."""
