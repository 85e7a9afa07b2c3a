"""Checkpoints and models on disk, written so that no crash and no full disk can damage them."""
