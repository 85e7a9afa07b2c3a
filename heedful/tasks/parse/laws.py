"""The laws of a parser's model by itself: the search makes trees of any output."""

from collections.abc import Iterable, Sequence

from heedful.data.batches import pad
from heedful.data.tokenizer import BOS, EOS, PAD
from heedful.run.task import Law
from heedful.tasks.parse.use import Parser
from heedful.tasks.shared.probes import a_few
from heedful.tasks.translate.laws import TranslationProbe


def parser_laws(parser: Parser, texts: Sequence[str]) -> Iterable[Law]:
    source, segments = pad(a_few(parser.tokenizer.encode(list(texts)), parser.tokenizer.size))
    options = {"bos": BOS, "eos": EOS, "longest": 30, "forbidden": (PAD, BOS)}
    return TranslationProbe(parser.model, source, segments, filler=PAD, options=options)
