"""A training run: what a task must offer (`task`), and the machinery that knows none of them."""
