"""Chains of proteins: aligned sequences, backbones, and the files that have them."""
