"""Data made on the spot, for demonstrations and tests that need none of anybody's."""
