"""Makes folders of token ids of data that are too large for the memory, and opens them."""
