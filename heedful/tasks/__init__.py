"""Floor 4: what a model is for. A task knows its data, its loss, its score, and how to answer a request."""
