"""Models of the Hugging Face Hub, there and back: each family is one file, with what its `config.json` means and a
table of its tensors' names."""
