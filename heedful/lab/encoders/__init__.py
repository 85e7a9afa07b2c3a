"""Encoders: pre-training on masked words, then fine-tuning on a task."""
