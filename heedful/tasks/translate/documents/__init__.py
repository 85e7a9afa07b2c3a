"""Texts longer than a sentence: documents, passages with marks inside, and whatever is translated in parts."""
