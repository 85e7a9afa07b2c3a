"""Language models: prompts and what follows, examples in them, sizes and losses."""
