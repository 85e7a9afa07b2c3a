"""Episodes of decisions, from files and from environments."""
