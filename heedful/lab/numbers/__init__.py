"""Numbers that the decks work out by hand."""
