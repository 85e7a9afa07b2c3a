"""Texts and their annotations: translations, labels, tags, answers, trees."""
