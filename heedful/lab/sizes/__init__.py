"""Parameter counts and other sizes of models."""
