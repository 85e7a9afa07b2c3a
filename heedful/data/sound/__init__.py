"""Sound: files, features, windows between pauses, and tables of utterances."""
