"""Documents that are translated: read into passages of text, and written back with other words in their place.

    document = read_document(path)
    document.passages                      # each a text, and the tags inside it
    document.written([None, ["Hallo ", mark, "Welt"]])   # bytes; None leaves a passage as it is

Nothing but the text of passages is changed: all else is kept as it stands, to the byte.
"""
