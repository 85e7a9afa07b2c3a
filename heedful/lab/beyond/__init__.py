"""Beyond text and pictures: both together, proteins, decisions."""
