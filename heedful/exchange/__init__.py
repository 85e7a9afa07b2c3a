"""Models from and for other libraries: tables of names, and the files beside the weights."""
