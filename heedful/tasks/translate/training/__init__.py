"""Epochs of pairs, their loss, pairs that models write, and the model card."""
