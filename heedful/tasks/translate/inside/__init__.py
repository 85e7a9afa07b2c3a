"""Looking into a translation: what was looked at, step by step and word by word."""
