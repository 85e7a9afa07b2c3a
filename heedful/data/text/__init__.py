"""Texts, and what is known of them: translations, labels, tags, answers, trees."""
