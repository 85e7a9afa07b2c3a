"""Beyond text or pictures alone: both together, proteins, decisions."""
