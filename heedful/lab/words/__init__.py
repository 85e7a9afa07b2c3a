"""Words: symbols, sub-words, vectors."""
