"""Before transformers: the thought vector, its bottleneck, and attention as the remedy."""
