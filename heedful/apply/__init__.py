"""What is done to a model from outside: other linear maps for inference, blocks compiled."""
