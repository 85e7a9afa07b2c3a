"""Changes a model from outside: other linear maps for inference, compiled or checkpointed blocks, adapters."""
