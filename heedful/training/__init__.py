"""Floor 3: one training loop for all tasks."""
