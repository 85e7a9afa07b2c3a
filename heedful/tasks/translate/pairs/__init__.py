"""Of a source and a translation that are given: which words belong together, and how likely it is."""
