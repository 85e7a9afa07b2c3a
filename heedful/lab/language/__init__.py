"""Language models: prompts and their continuations, few-shot examples, sizes and losses."""
