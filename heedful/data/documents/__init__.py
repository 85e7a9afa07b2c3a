"""Documents for translation: splits them into passages of text, and writes them with other words in place of these.

    document = read_document(path)
    document.passages                      # each a text, and the tags inside it
    document.written([None, ["Hallo ", mark, "Welt"]])   # bytes; None leaves a passage as it is

Only the text of passages is changed: everything else is kept, byte for byte.
"""
