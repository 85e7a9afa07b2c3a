"""`heed tag`."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from heedful.tasks.shared.line_by_line import answer_lines, one_each
from heedful.tasks.shared.options import Device, Json, Run, Texts, Weights
from heedful.tasks.shared.terminal import Command, printable

if TYPE_CHECKING:
    from heedful.tasks.tag.use import TaggedText


def tag(
    run: Run, texts: Texts = None, device: Device = "auto", weights: Weights = "float32", as_json: Json = False
) -> None:
    """Label the words of sentences: WORD TAB LABEL, a line each, and a blank line after a sentence.

    Words are what stands between blanks, so part them as in the data that the model learnt from.

    Example: heed tag runs/tag "i want a flight to boston"
    """
    from heedful.tasks.shared.served import load_in_bits
    from heedful.tasks.tag.use import Tagger, tag_texts

    tagger = load_in_bits(Tagger.load, run, device, weights)

    def answers(lines: list[str], first: int) -> Iterator[Sequence["TaggedText"]]:
        return one_each(tag_texts(tagger, lines))

    def show(found: "TaggedText") -> str:
        return "".join(f"{printable(word['word'])}\t{word['label']}\n" for word in found["words"])

    answer_lines(texts, answers, show, as_json=as_json)


COMMANDS = (Command("tag", tag),)
