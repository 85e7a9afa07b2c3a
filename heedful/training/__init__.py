"""Floor 3: one training loop for every task."""
