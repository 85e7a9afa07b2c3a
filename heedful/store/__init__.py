"""What is kept on disk: checkpoints and models, written so that no crash and no full disk can spoil them."""
