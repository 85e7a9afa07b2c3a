"""From files to batches: reading parallel text, the tokenizer, and rows of token ids."""
