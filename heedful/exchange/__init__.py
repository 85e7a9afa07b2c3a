"""Models from and for other libraries: tables of names, and what stands beside the weights."""
