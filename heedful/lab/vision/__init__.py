"""Pictures as sequences."""
