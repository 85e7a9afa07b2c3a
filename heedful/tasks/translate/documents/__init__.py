"""Texts longer than a sentence: documents, passages with marks, and texts that are translated in parts."""
