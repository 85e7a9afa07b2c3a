"""What an epoch of pairs is made of, its loss, pairs that models write, and what the card tells."""
