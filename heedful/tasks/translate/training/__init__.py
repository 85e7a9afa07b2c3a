"""What an epoch of pairs is, its loss, and pairs that are made for it."""
