"""Before transformers: a thought vector, its bottleneck, and the attention that was made against it."""
