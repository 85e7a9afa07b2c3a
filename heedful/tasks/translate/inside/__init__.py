"""Looking inside a translation: its attention, its steps and its words."""
