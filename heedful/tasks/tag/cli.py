"""`heed tag`."""

from heedful.tasks.shared.cli import Command, Device, Json, Run, Texts, tell, texts_given


def tag(run: Run, texts: Texts = None, device: Device = "auto", as_json: Json = False) -> None:
    """Label the words of sentences: WORD TAB LABEL, a line each, and a blank line after a sentence.

    Words are what stands between blanks, so part them as in the data that the model learnt from.

    Example: heed tag runs/tag "i want a flight to boston"
    """
    from heedful.run.device import chosen_device
    from heedful.tasks.tag.use import Tagger, tag_texts

    tagger = Tagger.load(run, device=chosen_device(device))
    for lines in texts_given(texts):
        for found in tag_texts(tagger, lines):
            words = (f"{word['word']}\t{word['label']}\n" for word in found["words"])
            tell(found, "".join(words), as_json=as_json)


COMMANDS = (Command("tag", tag),)
