"""Generated data, for demonstrations and tests that need no data of others."""
