"""Claims in words: some can be tried, others are facts of the world."""
