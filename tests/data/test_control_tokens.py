"""Control tokens beyond the first: masks, sentinels and further ones come last, and change no other."""

import json
from pathlib import Path

import pytest

from heedful.data.lines import composed
from heedful.data.tokenizer import BOS, EOS, MASK, Kind, Tokenizer, train_tokenizer
from heedful.errors import InputError, StorageError
from vocabularies import CORPUS, NASTY

KINDS = pytest.mark.parametrize("kind", ["bpe", "unigram", "chars", "bytes"])


@KINDS
def test_a_mask_is_one_more_token_and_changes_no_other(kind: Kind, tmp_path: Path) -> None:
    without = train_tokenizer(CORPUS, kind=kind, size=399)
    masked = train_tokenizer(CORPUS, kind=kind, size=400, mask=True)
    assert (without.mask, masked.mask, masked.size) == (None, without.size, without.size + 1)
    assert masked.encode_whole(NASTY + CORPUS) == without.encode_whole(NASTY + CORPUS)
    assert all(masked.mask not in ids for ids in masked.encode_whole(["<mask>", " <mask><mask> "]))
    (tmp_path / "tokenizer.json").write_text(masked.json())
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    assert (again.json(), again.mask) == (masked.json(), masked.mask)
    assert again.pieces([masked.mask, BOS]) == [MASK, "<s>"]
    assert again.decode([masked.mask]) == ""


@KINDS
def test_a_mask_takes_the_place_of_a_word_with_its_space(kind: Kind) -> None:
    tokenizer = train_tokenizer(CORPUS, kind=kind, size=400, mask=True)
    assert tokenizer.carries_spaces == (kind in ("bpe", "unigram"))
    gap = "" if tokenizer.carries_spaces else " "
    before, after, end = tokenizer.encode_whole(["in hard" + gap, " are", ""])
    texts = ["in hard <mask> are", "<mask>", "in hard <mask><mask>", "in hard  <mask>", "no"]
    found = tokenizer.encode_masked(texts)
    mask = tokenizer.mask
    assert found[:3] == [[*before, mask, *after], [mask], [*before, mask, mask, *end]]
    assert found[3] == [*tokenizer.encode_whole(["in hard " + gap])[0], mask], "one space, and no more"
    assert found[4] == tokenizer.encode_whole(["no"])[0]
    with pytest.raises(InputError, match="a vocabulary without <mask>"):
        train_tokenizer(CORPUS, kind=kind, size=400).encode_masked(["<mask>"])


def test_a_mask_of_another_make_is_refused(tmp_path: Path) -> None:
    document = json.loads(train_tokenizer(CORPUS, kind="bpe", size=400, mask=True).json())
    for changed in ({"content": "<hole>"}, {"lstrip": True}, {"special": False}):
        other = json.loads(json.dumps(document))
        other["added_tokens"][-1] |= changed
        (tmp_path / "tokenizer.json").write_text(json.dumps(other))
        with pytest.raises(StorageError, match="a tokenizer of another make"):
            Tokenizer.load(tmp_path / "tokenizer.json")


@KINDS
def test_sentinels_come_last_and_change_no_other(kind: Kind, tmp_path: Path) -> None:
    without = train_tokenizer(CORPUS, kind=kind, size=389)
    for mask in (False, True):
        marked = train_tokenizer(CORPUS, kind=kind, size=400 + mask, mask=mask, sentinels=11)
        assert marked.sentinels == list(range(without.size + mask, without.size + mask + 11))
        assert (marked.mask is not None, without.sentinels) == (mask, [])
        assert marked.encode(NASTY + CORPUS) == without.encode(NASTY + CORPUS)
        (tmp_path / "tokenizer.json").write_text(marked.json())
        again = Tokenizer.load(tmp_path / "tokenizer.json")
        assert (again.json(), again.mask, again.sentinels) == (marked.json(), marked.mask, marked.sentinels)
        assert again.pieces([*marked.sentinels[::10], BOS]) == ["<extra_id_0>", "<extra_id_10>", "<s>"]
        assert again.decode(marked.sentinels) == ""


@KINDS
def test_marks_are_read_and_said(kind: Kind) -> None:
    tokenizer = train_tokenizer(CORPUS, kind=kind, size=400, mask=True, sentinels=11)
    mask, sentinels = tokenizer.mask, tokenizer.sentinels
    before, after = tokenizer.encode(["in hard", "are"])
    texts = ["in hard <mask> are", "<extra_id_0> in hard <extra_id_10><extra_id_1> are", "in hard", "", "<mask>"]
    assert tokenizer.encode_marked(texts) == [
        [*before, mask, *after],
        [sentinels[0], *before, sentinels[10], sentinels[1], *after],
        before,
        [],
        [mask],
    ]
    assert tokenizer.decode_marked([*before, mask, *after, EOS]) == "in hard <mask> are"
    assert tokenizer.decode_marked([sentinels[0], sentinels[10], *before]) == "<extra_id_0> <extra_id_10> in hard"
    plain = train_tokenizer(CORPUS, kind=kind, size=400)
    for text in (*NASTY, "<mask> and <extra_id_0>"):
        assert plain.encode_marked([text]) == plain.encode([text])
        assert plain.decode_marked(plain.encode([text])[0]) == plain.decode(plain.encode([text])[0])


def test_sentinels_of_another_make_are_refused(tmp_path: Path) -> None:
    document = json.loads(train_tokenizer(CORPUS, kind="bpe", size=400, sentinels=3).json())
    for place, content in ((-1, "<extra_id_3>"), (-2, "<mask>"), (-3, "<extra_id_7>")):
        other = json.loads(json.dumps(document))
        other["added_tokens"][place]["content"] = content
        (tmp_path / "tokenizer.json").write_text(json.dumps(other))
        with pytest.raises(StorageError, match="a tokenizer of another make"):
            Tokenizer.load(tmp_path / "tokenizer.json")


USER, ANSWER = EXTRA = ("<|user|>", "<|assistant|>")
SPELLED = [*NASTY, *EXTRA, " <|user|> hello", "a<|user|>b <|assistant|><|user|>", "<|user|><s><mask><|user|>"]


@KINDS
@pytest.mark.parametrize(("mask", "sentinels"), [(False, 0), (True, 3)])
def test_extra_tokens_come_last_and_change_no_other(kind: Kind, mask: bool, sentinels: int) -> None:
    """Also where the text that is learnt from is full of their names."""
    texts = [*CORPUS, *[f"{USER}hello{ANSWER} {USER}{USER} hello{ANSWER}"] * 50]
    without = train_tokenizer(texts, kind=kind, size=420, mask=mask, sentinels=sentinels)
    tokenizer = train_tokenizer(texts, kind=kind, size=422, mask=mask, sentinels=sentinels, extra=EXTRA)
    assert tokenizer.extra == {USER: without.size, ANSWER: without.size + 1}
    assert (tokenizer.size, without.extra) == (without.size + 2, {})
    assert (tokenizer.mask, tokenizer.sentinels) == (without.mask, without.sentinels)
    assert {*tokenizer.extra.values()} == {*tokenizer.controls} - {*without.controls}


@KINDS
def test_a_text_that_spells_an_extra_token_is_only_text(kind: Kind) -> None:
    without = train_tokenizer(CORPUS, kind=kind, size=400, mask=True)
    tokenizer = train_tokenizer(CORPUS, kind=kind, size=402, mask=True, extra=EXTRA)
    for encode in ("encode", "encode_whole", "encode_masked", "encode_marked"):
        found = getattr(tokenizer, encode)(SPELLED)
        assert found == getattr(without, encode)(SPELLED)
        assert not {index for ids in found for index in ids} & {*tokenizer.extra.values()}
    clean = [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in SPELLED]
    assert tokenizer.encode_placed(clean) == without.encode_placed(clean)
    if kind in ("bpe", "bytes"):
        assert tokenizer.decode_batch(tokenizer.encode(clean)) == [*map(composed, clean)]


@KINDS
def test_extra_tokens_are_saved_and_say_nothing_unless_asked(kind: Kind, tmp_path: Path) -> None:
    tokenizer = train_tokenizer(CORPUS, kind=kind, size=402, sentinels=2, extra=EXTRA)
    assert [token["content"] for token in json.loads(tokenizer.json())["added_tokens"][-2:]] == [USER, ANSWER]
    path = tmp_path / "tokenizer.json"
    path.write_text(tokenizer.json(), encoding="utf-8")
    again = Tokenizer.load(path)
    assert (again.json(), again.extra, again.controls) == (tokenizer.json(), tokenizer.extra, tokenizer.controls)
    assert again.encode(SPELLED) == tokenizer.encode(SPELLED)
    user, answer = again.extra.values()
    asked, said = again.encode_whole(["two men", " are outside\n"])
    ids = [BOS, user, *asked, answer, *said, user, EOS]
    assert again.decode(ids) == "two men are outside\n"
    assert again.decode(ids, extra=True) == f"{USER}two men{ANSWER} are outside\n{USER}"
    assert again.decode(again.encode(["two men"])[0], extra=True) == "two men"
    assert again.pieces([user, answer]) == [USER, ANSWER]


@KINDS
def test_without_extra_tokens_nothing_changes(kind: Kind) -> None:
    for mask, sentinels in ((False, 0), (True, 0), (True, 3)):
        plain = train_tokenizer(CORPUS, kind=kind, size=400, mask=mask, sentinels=sentinels)
        same = train_tokenizer(CORPUS, kind=kind, size=400, mask=mask, sentinels=sentinels, extra=())
        assert plain.json() == same.json()


@pytest.mark.parametrize(
    "extra", [("user",), ("<user>",), ("<||>",), ("<|a b|>",), ("<mask>",), ("</s>",), ("<extra_id_0>",), (USER, USER)]
)
def test_extra_tokens_that_could_be_others_are_refused(extra: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="extra tokens ") as caught:
        train_tokenizer(CORPUS, kind="bpe", size=400, extra=extra)
    assert caught.value.fix


def test_extra_tokens_of_another_make_are_refused(tmp_path: Path) -> None:
    document = json.loads(train_tokenizer(CORPUS, kind="bpe", size=400, mask=True, extra=EXTRA).json())
    for place, changed in (
        (-1, {"content": "<hole>"}),
        (-1, {"content": "<extra_id_0>"}),
        (-2, {"content": "<extra_id_1>"}),
        (-2, {"lstrip": True}),
        (-2, {"special": False}),
        (-3, {"content": "<|system|>", "normalized": True}),
    ):
        other = json.loads(json.dumps(document))
        other["added_tokens"][place] |= changed
        (tmp_path / "tokenizer.json").write_text(json.dumps(other))
        with pytest.raises(StorageError, match="a tokenizer"):
            Tokenizer.load(tmp_path / "tokenizer.json")
