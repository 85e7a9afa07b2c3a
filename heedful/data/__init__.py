"""From files to batches: readers of data, the tokenizer, and rows of token ids."""
