"""Converts text to token ids and back: one class around a `tokenizers.Tokenizer`, with control ids that all models
share.

Exactly one space is put before a text, so that a word is the same piece at the start of a sentence as inside it;
decoding removes that space. A user's "<s>" is three ordinary characters, never a control id. Text is composed first
(Unicode's NFC), except by vocabularies that were trained before this was done: `tokenizer.json` says which.

A vocabulary that was not trained here comes with `SpecialTokens`, and encodes text as its own library does.
"""

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain, groupby
from pathlib import Path

import tokenizers
from tokenizers import models, normalizers

from heedful.data.lines import BETWEEN, in_parts, sanitise
from heedful.data.pieces import BOS, BYTE_OF, EOS, PAD, SMALLEST, SPECIALS, UNK, Kind, blank_pieces, trained_pieces
from heedful.errors import HeedError, InputError, StorageError, TextError

Ids = list[int]  # token ids
MASK, SENTINEL = "<mask>", "<extra_id_{}>"  # the last ids of a vocabulary that was made with them
MANY = 1000  # texts; with more than that, each word is encoded only once
WORDS = 1 << 20  # whose ids are remembered
# The names of extra control tokens, which come after these. Text is split between "<" or "<|" and a letter before
# pieces are learnt, so that no piece is spelled like this.
EXTRA = re.compile(r"<\|[A-Za-z][A-Za-z0-9_]*\|>|<[A-Z]+>")


@dataclass(frozen=True, kw_only=True)
class SpecialTokens:
    """The ids of a vocabulary's control tokens."""

    bos: int  # the first token of generated text
    eos: int  # the last
    pad: int | None = None
    unk: int | None = None
    mask: int | None = None  # replaces a hidden token; None: "<mask>", if the vocabulary has it
    spelled: bool = True  # the string of a control token in a text is read as that token
    separators: int = 1  # the number of `eos` between the two texts of a pair


OURS = SpecialTokens(bos=BOS, eos=EOS, pad=PAD, unk=UNK, spelled=False)


class Tokenizer:
    """A trained vocabulary of `size` tokens, control tokens included.

    `special` is for a vocabulary that was not trained here. `numbers` has the ids of its pieces, if they differ from
    those of `inner`: a piece that is missing there is the unknown token.
    """

    def __init__(
        self,
        inner: tokenizers.Tokenizer,
        special: SpecialTokens | None = None,
        numbers: Mapping[str, int] | None = None,
    ) -> None:
        self.special, self.ours, self.numbers = special or OURS, special is None, numbers
        inner.encode_special_tokens = not self.special.spelled  # the file does not keep this setting
        self._inner = inner
        self._space = " " if self.ours else ""
        decoder = repr(inner.decoder)
        self._byte_level, self._word_pieces = "ByteLevel" in decoder, "WordPiece" in decoder
        self.composes = isinstance(inner.normalizer, normalizers.NFC)  # whether text is composed before it is encoded
        if numbers is None:
            self._names: dict[int, str] | None = None
            self._controls = {index for index, token in inner.get_added_tokens_decoder().items() if token.special}
        else:
            self._names = {index: piece for piece, index in numbers.items()}
            added = (token.content for token in inner.get_added_tokens_decoder().values() if token.special)
            named = (numbers.get(name) for name in added)
            self._controls = {index for index in (self.bos, self.eos, self.pad, self.unk, *named) if index is not None}

    def begun_by(self, bos: int) -> "Tokenizer":
        """Returns the same tokenizer with another BOS token."""
        return Tokenizer(self._inner, replace(self.special, bos=bos), self.numbers)

    @property
    def bos(self) -> int:
        return self.special.bos

    @property
    def eos(self) -> int:
        return self.special.eos

    @property
    def pad(self) -> int:
        """The id that fills rows. No query attends there, so a vocabulary without a padding token uses EOS."""
        return self.eos if self.special.pad is None else self.special.pad

    @property
    def unk(self) -> int | None:
        return self.special.unk

    @property
    def size(self) -> int:
        return self._inner.get_vocab_size() if self.numbers is None else len(self.numbers)

    @property
    def mask(self) -> int | None:
        """The id of the token that replaces hidden ones; None if the vocabulary has none."""
        return self._inner.token_to_id(MASK) if self.special.mask is None else self.special.mask

    @property
    def controls(self) -> list[int]:
        """The ids that stand for no text."""
        marks = (self.bos, self.eos, self.special.pad, self.unk, self.mask, *self.sentinels)
        return sorted(self._controls.union(index for index in marks if index is not None))

    @property
    def sentinels(self) -> list[int]:
        """The ids that stand for hidden spans, in order; empty if the vocabulary has none."""
        found: list[int] = []
        while (index := self._inner.token_to_id(SENTINEL.format(len(found)))) is not None:
            found.append(index)
        return found

    @property
    def extra(self) -> dict[str, int]:
        """The ids of further control tokens by their names, such as "<|user|>", in order. Text is never encoded as one
        of them: the code that writes a conversation inserts them between its texts."""
        others = {self.bos, self.eos, self.special.pad, self.unk, self.mask, *self.sentinels}
        return {self._token(index): index for index in sorted(self._controls) if index not in others}

    def literal(self) -> "Tokenizer":
        """Returns the same tokenizer, but with the string of a control token in a text as ordinary text."""
        if not self.special.spelled:
            return self
        inner = tokenizers.Tokenizer.from_str(self.json())
        return Tokenizer(inner, replace(self.special, spelled=False), self.numbers)

    def with_extra(self, names: Sequence[str]) -> "Tokenizer":
        """Returns the same tokenizer with these control tokens appended; those that it has already stay. Raises
        InputError if the ids of the vocabulary come from a file of their own."""
        new = [name for name in names if self._inner.token_to_id(name) not in self._controls]
        if not new:
            return self
        if self.numbers is not None:
            raise InputError(f"a vocabulary that cannot get {', '.join(new)}", fix="start from another model")
        inner = tokenizers.Tokenizer.from_str(self.json())
        inner.add_special_tokens([*new])
        return Tokenizer(inner, None if self.ours else self.special)

    @property
    def fingerprint(self) -> str:
        """The sha256 of `json()`, in hexadecimal."""
        return sha256(self.json().encode()).hexdigest()

    def encode(self, texts: Sequence[str], words: dict[str, list[int]] | None = None) -> list[list[int]]:
        """Returns the ids of each text, without BOS and EOS; an empty list for an empty text. Never contains a control
        id, unless control tokens are `spelled`. `words` keeps the ids of words from one call for the next."""
        return self._ids(texts, lambda text: self._space + sanitise(text) if text else "", words)

    def composed(self, text: str) -> str:
        """Returns a text as it is encoded, and as a model that learnt such texts writes it: composed, if the
        vocabulary composes text."""
        text = sanitise(text)
        return self._inner.normalizer.normalize_str(text) if self.composes else text

    @property
    def merges(self) -> list[tuple[int, int, int]]:
        """The merges of BPE as ids (left, right, merged), in the order in which they were learnt; empty for a
        vocabulary of another kind, or one that was not trained here."""
        model = json.loads(self.json())["model"]
        if not self.ours or model["type"] != "BPE":
            return []
        ids = model["vocab"]
        return [(ids[left], ids[right], ids[left + right]) for left, right in model["merges"]]

    def unmerged(self, text: str) -> list[tuple[int, ...]]:
        """Splits a text into words as `encode` does, each as the ids of its characters, from which `merges` make its
        tokens."""
        text = self._space + self.composed(text) if text else ""
        with library_errors(unreadable_text):
            words = self._inner.pre_tokenizer.pre_tokenize_str(text)
        return [tuple(self._inner.token_to_id(sign) or UNK for sign in word) for word, _ in words]

    def encode_placed(
        self, texts: Sequence[str], *, whole: bool = False
    ) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """As `encode`, or `encode_whole`, with the span of characters (begin, end) that each token covers in its text.
        A token of a word may cover the space before it. The texts must be valid for UTF-8."""
        space = "" if whole else self._space
        texts = [space + text for text in texts]
        with library_errors(unreadable_text):
            found = self._inner.encode_batch(texts, add_special_tokens=False)
        added = len(space)
        spans = (
            _with_marks(one.offsets, len(text)) if self.composes else one.offsets
            for text, one in zip(texts, found, strict=True)
        )
        return [
            (ids, [(max(0, begin - added), max(0, end - added)) for begin, end in own])
            for ids, own in zip(map(self._numbered, found), spans, strict=True)
        ]

    def encode_whole(self, texts: Sequence[str], words: dict[str, list[int]] | None = None) -> list[list[int]]:
        """As `encode`, but without a space before the first word, for text that is to be continued."""
        return self._ids(texts, sanitise, words)

    def parts(self, texts: Iterable[str]) -> Iterator[tuple[bool, str]]:
        """The texts in parts that `encode_whole` may be given one by one, and of each whether it begins a text."""
        for text in texts:
            for number, part in enumerate(in_parts(text) if self.ours else (text,)):
                yield not number, part

    def encode_masked(self, texts: Sequence[str]) -> list[list[int]]:
        """As `encode_whole`, with the mask's id for each "<mask>", also in a vocabulary whose own name for it is
        another. If words carry the space before them, so does a mask: one space before it is not a token of its own.
        Raises InputError for a vocabulary without a mask."""
        mask = self.mask
        if mask is None:
            raise InputError(f"a vocabulary without {MASK}", fix="use a model of heed train fill")
        if self.special.spelled:
            return self.encode_whole([text.replace(MASK, self._token(mask)) for text in texts])
        split = re.compile(f" ?({MASK})" if self.carries_spaces else f"({MASK})")
        return self._joined([split.split(text) for text in texts], {MASK: mask})

    def encode_marked(self, texts: Sequence[str]) -> list[list[int]]:
        """As `encode`, but "<mask>" and "<extra_id_0>", ... are encoded as these tokens, if the vocabulary has them; a
        space before one belongs to it, as with a word. A vocabulary that was not trained here reads its own marks as
        its library does."""
        if not self.ours:
            return self.encode(texts)
        marks = {mark: index for index, mark in self._marks().items()}
        split = re.compile(f" ?({'|'.join(marks)})") if marks else re.compile("(?!)")
        parts = [split.split(self._space + sanitise(text)) if text else [""] for text in texts]
        return self._joined(parts, marks)

    def _joined(self, rows: Sequence[Sequence[str]], marks: Mapping[str, int]) -> list[list[int]]:
        """Encodes rows that alternate text and mark, beginning and ending with a text; returns the ids of each row."""
        encoded = iter(self.encode_whole([text for row in rows for text in row[::2]]))
        made = []
        for row in rows:
            ids = [*next(encoded)]
            for mark in row[1::2]:
                ids += [marks[mark], *next(encoded)]
            made.append(ids)
        return made

    def decode_marked(self, ids: Sequence[int]) -> str:
        """As `decode`, but keeps the marks that `encode_marked` reads."""
        marks = self._marks()
        if not self.ours and self._names is None:
            kept = [index for index in ids if index in marks or index not in self._controls]
            return self._inner.decode(kept, skip_special_tokens=False)
        return self._decode_named(ids, {index: f" {mark}" for index, mark in marks.items()})

    def _marks(self) -> dict[int, str]:
        masks = {} if self.mask is None else {self.mask: MASK}
        return masks | {index: SENTINEL.format(n) for n, index in enumerate(self.sentinels)}

    @property
    def carries_spaces(self) -> bool:
        """Whether some tokens hold a space and what follows it; in a vocabulary of characters none does."""
        space = "Ġ" if self._byte_level else "▁"
        return any(len(token) > 1 and token.startswith(space) for token in self._inner.get_vocab())

    def letters(self, index: int) -> tuple[bool, bool]:
        """Whether a token begins and whether it ends with a letter; all characters beyond ASCII count as letters."""
        data = b" " if index in self._controls else self.spelling(index)
        first, last = data[:1], data[-1:]
        return first.isalpha() or first >= b"\x80", last.isalpha() or last >= b"\x80"

    def decode_whole(self, ids: Sequence[int]) -> str:
        """Returns the text of ids that come from `encode_whole`, or that continue such ids."""
        if self._names is None:
            with library_errors(unreadable_text):
                return self._inner.decode(list(ids))
        pieces = [self._names.get(index, "") for index in ids if index not in self._controls]
        return self._inner.decoder.decode(pieces).strip()

    def decode_after(self, before: Sequence[int], ids: Sequence[int]) -> str:
        """Returns the text that `ids` add to the text of `before`. Some vocabularies drop the space before a text's
        first word, so `ids` cannot be decoded alone."""
        begun, whole = self.decode_whole(before), self.decode_whole([*before, *ids])
        return whole.removeprefix(begun) if whole.startswith(begun) else self.decode_whole(ids)

    def settled(self, ids: Sequence[int]) -> bool:
        """Whether the text of these ids is final: following ids cannot change it."""
        ids = [index for index in ids if index not in self._controls]
        if self._byte_level:
            reader = codecs.getincrementaldecoder("utf-8")("replace")
            reader.decode(b"".join(map(self.spelling, ids)))
            return not reader.getstate()[0]
        # Consecutive byte tokens are decoded together.
        return not ids or BYTE.fullmatch(self._token(ids[-1])) is None

    def decode(self, ids: Sequence[int], *, extra: bool = False) -> str:
        """Returns the text of the ids. Control ids are left out, except those of the property `extra` if the argument
        `extra` is true; bytes that are not UTF-8 become U+FFFD."""
        names = {index: name for name, index in self.extra.items()} if extra else {}
        return self._decode_named(ids, names)

    def _decode_named(self, ids: Sequence[int], names: Mapping[int, str]) -> str:
        """Returns the text of the ids; those in `names` become these names."""
        parts = (
            "".join(names[index] for index in own) if named else self.decode_whole(list(own))
            for named, own in groupby(ids, key=names.__contains__)
        )
        return "".join(parts).removeprefix(self._space)

    def decode_batch(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Applies `decode` to each row."""
        return [self.decode(row) for row in rows]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Returns each token for display: its text with "▁" for a space.

        A character that spans several tokens is shown at the token that completes it; those before show their bytes as
        "<0xF0>".
        """
        reader = codecs.getincrementaldecoder("utf-8")("replace")
        shown = []
        for index in ids:
            if index in self._controls:
                reader.reset()
                shown.append(self._token(index))
            else:
                data = self.spelling(index)
                text = reader.decode(data).replace(" ", "▁")
                shown.append(text or "".join(f"<0x{byte:02X}>" for byte in data))
        return shown

    def names(self, size: int) -> list[str]:
        """Returns the strings of the first `size` ids in the vocabulary, all different; an id without one gets
        "<unused_ID>"."""
        return [self._token(index) or f"<unused_{index}>" for index in range(size)]

    def json(self) -> str:
        """Returns the whole tokenizer as the text of a `tokenizer.json`."""
        return self._inner.to_str()

    @classmethod
    def load(
        cls, path: str | Path, special: SpecialTokens | None = None, numbers: Mapping[str, int] | None = None
    ) -> "Tokenizer":
        """Reads what `json` wrote. Raises StorageError, also for a tokenizer that was not trained here if `special` is
        missing."""
        tokenizer = cls(read_inner(path), special, numbers)
        if special is None:
            tokenizer._refuse_another_make(path)
        return tokenizer

    def _refuse_another_make(self, path: str | Path) -> None:
        inner = self._inner
        for index, special in enumerate(SPECIALS):
            if inner.token_to_id(special) != index:
                what = f"{special} has the id {inner.token_to_id(special)}, expected {index}"
                raise StorageError(what, where=str(path), fix=FIX)
        blank = blank_pieces("bpe" if isinstance(inner.model, models.BPE) else "unigram")
        if inner.normalizer is None:  # trained before text was composed
            blank.normalizer = None
        ids = sorted(inner.get_vocab().values())
        extra = {index: name for name, index in self.extra.items() if EXTRA.fullmatch(name)}
        marks = self._marks() | extra
        if [*marks] == ids[len(ids) - len(marks) :]:
            blank.add_special_tokens([*marks.values()])
        alike = all(inner.id_to_token(index) == blank.id_to_token(index) for index in range(SMALLEST))
        if ids != list(range(len(ids))) or not alike or _settings(inner) != _settings(blank):
            raise StorageError("a tokenizer of another make", where=str(path), fix=FIX)

    def _ids(
        self, texts: Sequence[str], read: Callable[[str], str], words: dict[str, list[int]] | None = None
    ) -> list[list[int]]:
        """Returns the ids of each text, after `read` is applied to it."""
        if self.ours and (len(texts) > MANY or words is not None):
            known: dict[str, list[int]] = {} if words is None else words
            parts = ([*map(read, texts[at : at + MANY])] for at in range(0, len(texts), MANY))
            return [ids for part in parts for ids in self._by_words(part, known)]
        texts = [*map(read, texts)]
        if self.numbers is None:
            return self._by_texts(texts)
        with library_errors(unreadable_text):
            return [self._numbered(one) for one in self._inner.encode_batch(texts, add_special_tokens=False)]

    def _by_words(self, texts: Sequence[str], known: dict[str, list[int]]) -> list[list[int]]:
        """As `_by_texts`, but encodes each different word, with the space before it, only once. `known` caches them."""
        if len(known) > WORDS:
            known.clear()
        words = [BETWEEN.split(text) for text in texts]
        new = sorted(set(chain.from_iterable(words)) - known.keys())
        known.update(zip(new, self._by_texts(new), strict=True))
        return [[*chain.from_iterable(map(known.__getitem__, own))] for own in words]

    def _by_texts(self, texts: Sequence[str]) -> list[list[int]]:
        with library_errors(unreadable_text):
            return [one.ids for one in self._inner.encode_batch_fast(texts, add_special_tokens=False)]

    def _numbered(self, found: tokenizers.Encoding) -> list[int]:
        if self.numbers is None:
            return found.ids
        unknown = self.pad if self.unk is None else self.unk
        return [self.numbers.get(piece, unknown) for piece in found.tokens]

    def _token(self, index: int) -> str:
        name = self._inner.id_to_token(index) if self._names is None else self._names.get(index)
        return name or ""

    def spelling(self, index: int) -> bytes:
        """Returns the bytes that a token adds to a text; it must not be a control token."""
        token = self._token(index)
        if self._byte_level and all(character in BYTE_OF for character in token):
            return bytes(BYTE_OF[character] for character in token)
        if self._word_pieces:
            return (token.removeprefix("##") if token.startswith("##") else f" {token}").encode()
        byte = BYTE.fullmatch(token)
        return bytes.fromhex(byte[1]) if byte else token.replace("▁", " ").encode()


FIX = "use the tokenizer.json that was written beside the model"
BYTE = re.compile("<0x([0-9A-F]{2})>")  # the token of a byte, in a vocabulary with byte fallback


@contextmanager
def library_errors(make: Callable[[str], HeedError]) -> Iterator[None]:
    """Raises the error that `make` returns for the message of one of the library's: it raises plain Exceptions, and, as
    for a pattern that takes too much time, a PanicException, which is no Exception."""
    try:
        yield
    except BaseException as error:
        if type(error) is not Exception and type(error).__name__ != "PanicException":
            raise
        raise make(" ".join(str(error).split())) from None


def unreadable_text(message: str) -> TextError:
    """The error for a text that a tokenizer cannot read or write."""
    what = f"a text that the model's tokenizer cannot read ({message[:100]})"
    return TextError(what, fix="take another text, or another model")


def read_inner(path: str | Path) -> tokenizers.Tokenizer:
    """Reads a `tokenizer.json` of any origin. Raises StorageError."""

    def refused(message: str) -> StorageError:
        return StorageError(f"not a tokenizer: {message}", where=str(path), fix=FIX)

    try:
        document = Path(path).read_bytes().decode()
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", where=str(path), fix=FIX) from None
    except UnicodeDecodeError as error:
        raise refused(str(error)) from None
    with library_errors(refused):
        return tokenizers.Tokenizer.from_str(document)


def train_tokenizer(
    texts: Iterable[str],
    *,
    kind: Kind,
    size: int,
    mask: bool = False,
    sentinels: int = 0,
    extra: Sequence[str] = (),
) -> Tokenizer:
    """Learns at most `size` tokens from the texts; the same texts give the same tokenizer on every machine. The last
    tokens are "<mask>" if `mask`, then `sentinels` tokens "<extra_id_0>", "<extra_id_1>", ..., then the `extra` control
    tokens, which no text is encoded as.

    "bpe" (Sennrich et al., 2016, on bytes as in Radford et al., 2019) restores every composed text exactly. "unigram"
    (Kudo, 2018) writes an unseen character as its bytes, and reads "▁" as a space. "chars" has a token for each
    character of the texts, and "bytes" for each byte, whatever the `size`. Raises InputError for no text, for a `size`
    too small for the bytes or, with "unigram", the texts' characters, and for extra tokens that repeat or are not named
    like "<|user|>" or "<EOQ>".
    """
    if not all(map(EXTRA.fullmatch, extra)) or len(set(extra)) < len(extra):
        raise InputError(f"extra tokens {', '.join(extra)}", fix='give different names like "<|user|>" or "<EOQ>"')
    inner = trained_pieces(texts, kind, size - mask - sentinels - len(extra))
    inner.add_special_tokens([MASK] * mask + [SENTINEL.format(n) for n in range(sentinels)] + [*extra])
    return Tokenizer(inner)


def _with_marks(offsets: Sequence[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    """Extends spans that cover only the base of a decomposed character to its marks, up to where the next span begins
    or the text, of this length, ends. Tokens of one character keep a common span."""
    made: list[tuple[int, int]] = []
    following, last = length, length
    for begin, end in reversed(offsets):
        if begin < following:
            following, last = begin, max(end, following)
        made.append((begin, last))
    return made[::-1]


def _settings(inner: tokenizers.Tokenizer) -> dict[str, object]:
    """The contents of `tokenizer.json` without what was learnt, and without the ids of the added tokens."""
    document = json.loads(inner.to_str())
    document["added_tokens"] = [token | {"id": None} for token in document["added_tokens"]]
    return document | {"model": document["model"] | {"vocab": None, "merges": None}}
