"""A decoder alone: experts, and what it repeats."""
