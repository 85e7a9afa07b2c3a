"""Given pairs of a source and a translation: which words belong together, and how likely the translation is."""
