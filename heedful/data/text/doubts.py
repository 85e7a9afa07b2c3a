"""What is wrong with pairs that can be trained on all the same, in a line each for who is about to do so."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from heedful.data.lines import composed
from heedful.data.text.quality.texts import TOKENISED, is_cut
from heedful.errors import counted

FEW = 1000  # pairs: below, what is learnt are these pairs
EACH_LABEL = 50  # pairs, which have each target on average, from which on they may be labels
SHARE = 0.03  # of the pairs, from which on it is worth a line


def doubts(source: Sequence[str], target: Sequence[str], tests: Collection[tuple[str, str]] = ()) -> list[str]:
    """Lines about pairs to train on: where many have the same text on both sides, or come again; where they are very
    few, or hardly any target is different; where words are cut into pieces, or punctuation off them; and where pairs
    that the model is tested on are among them."""
    pairs = list(zip(source, target, strict=True))
    lines = [few(len(pairs)), labels(pairs), same(pairs), again(pairs), cut(pairs), tokenised(pairs)]
    lines += [known(pairs, tests)]
    return [line for line in lines if line]


def few(count: int) -> str:
    if count >= FEW:
        return ""
    what = f"only {counted(count, 'pair')} to train on: nothing general can be learnt from so few"
    return f"{what}; 10,000 are usual for short and simple sentences, and a million for news"


def labels(pairs: Sequence[tuple[str, str]]) -> str:
    """Where hardly any target is different from the others."""
    different = len({other for _, other in pairs})
    if EACH_LABEL * different > len(pairs):
        return ""
    what = f"only {different:,} different {'target' if different == 1 else 'targets'} in {len(pairs):,} training pairs"
    return f"{what}: if these are labels, heed train classify learns them"


def same(pairs: Sequence[tuple[str, str]]) -> str:
    count = sum(one.strip() == other.strip() for one, other in pairs)
    if count <= SHARE * len(pairs):
        return ""
    return f"{_share(count, len(pairs))} have the same text on both sides: the model will learn to copy"


def again(pairs: Sequence[tuple[str, str]]) -> str:
    different = len(set(pairs))
    if len(pairs) - different <= SHARE * len(pairs):
        return ""
    return f"{_share(len(pairs) - different, len(pairs))} are copies of others: only {different:,} are different"


def cut(pairs: Sequence[tuple[str, str]]) -> str:
    """Where other programs have cut the words."""
    count = sum(is_cut(one) or is_cut(other) for one, other in pairs)
    if count <= SHARE * len(pairs):
        return ""
    return f"{_share(count, len(pairs))} have words in pieces ('@@ ' or '▁'): give the text before it was cut"


def tokenised(pairs: Iterable[tuple[str, str]]) -> str:
    """Where another program has cut punctuation off the words of most pairs."""
    counts = Counter(any(map(TOKENISED.search, pair)) for pair in pairs)
    if counts[True] <= counts[False]:
        return ""
    what = "have blanks before their punctuation, or &apos;, as Moses' tokenizer leaves them"
    share = _share(counts[True], counts.total())
    return f"{share} {what}: give the text before it, or translate and score such text alone"


def known(pairs: Sequence[tuple[str, str]], tests: Collection[tuple[str, str]]) -> str:
    """Of test pairs, those that are trained on."""
    tested = {(composed(one), composed(other)) for one, other in tests}
    count = len(tested & {(composed(one), composed(other)) for one, other in pairs}) if tested else 0
    if not count:
        return ""
    return f"{count:,} of {len(tested):,} test pairs are trained on too: the scores will be better than the model is"


def _share(count: int, whole: int) -> str:
    return f"{count:,} of {whole:,} training pairs ({100 * count / whole:.0f} %)"
