"""Claims in words: some can be tested, others are facts about the world."""
