"""Many texts looked at together are said to be what each alone would be; what is skipped has no fault."""

import re

import ftfy
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heedful.data.text.quality import languages, texts
from heedful.data.text.quality.languages import LEAST, ROUNDED, SURE, identifier, language, languages_of
from heedful.data.text.quality.many_languages import LONGEST

SENTENCES = [
    "The weather was very good yesterday afternoon.",
    "Das Wetter war gestern Nachmittag sehr schön.",
    "Le temps était vraiment très beau hier après-midi.",
    "Vrijeme je jučer poslijepodne bilo jako lijepo.",
    "Данас смо видели лепу планину.",
    "Вчера днём была очень хорошая погода в городе.",
    "昨日の午後はとても天気が良かったので公園へ行きました。",
    "كان الطقس جميلا جدا بعد ظهر أمس في المدينة.",
    "Χθες το απόγευμα έκανε πολύ καλό καιρό στην πόλη μας.",
    "오늘 오후에는 날씨가 아주 좋았습니다.",
    "กขค สวัสดีตอนบ่ายวันนี้อากาศดีมาก",
]
WORDS = [word for sentence in SENTENCES for word in sentence.split()]
MIXED = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join),
    st.lists(st.sampled_from(WORDS), max_size=20).map(lambda words: " ".join(words).upper()),
    st.text(max_size=60),
    st.text("0123456789 .,", max_size=60),
    st.sampled_from(WORDS).map(lambda word: word * (LONGEST // len(word.encode()) + 1)),
)


@given(st.lists(MIXED, max_size=30))
@example([*SENTENCES, *SENTENCES[::-1]])
@example(["e\u0301te\u0301 " * 10, "\ud800 no character, and some words behind it"])
@settings(deadline=None, max_examples=40)
def test_languages_of_many_texts_are_those_of_each(many: list[str]) -> None:
    assert languages_of(many) == [language(text) for text in many]


def test_sums_in_another_order_are_asked_about_again_where_they_could_decide(monkeypatch) -> None:
    texts = [" ".join(WORDS[i : i + n]) for n in range(3, 12) for i in range(len(WORDS) - n)]
    own = {text: identifier().classify(text) for text in texts if len(text) >= LEAST}
    near = [text for text, (_, probability) in own.items() if abs(probability - SURE) < ROUNDED / 2]
    assert near
    asked: list[str] = []
    monkeypatch.setattr(languages, "language", lambda text: asked.append(text))
    languages_of(texts)
    assert {*near} <= {*asked} < {*own}
    together = languages.batches().classify([*own])
    assert max(abs(one[1] - said[1]) for one, said in zip(together, own.values(), strict=True) if one) < ROUNDED / 100
    assert [one[0] for one in together if one and one[1] > 0.5] == [code for code, p in own.values() if p > 0.5]


@given(st.text("a. Ñ-é€ŠŒœÂÃß»©°Øв\x85\xa0²√√\u201aÄГЎ", max_size=6))
def test_only_what_is_not_decoded_wrongly_is_skipped(text: str) -> None:
    if not texts.UNDECODED.search(text):
        assert not ftfy.badness.is_bad(text)


@pytest.mark.parametrize("before", ["", "a", ".", "a "])
@pytest.mark.parametrize("behind", ["", "a", " "])
def test_a_character_that_is_alone_is_decoded_wrongly_only_if_it_is_one_of_four(before: str, behind: str) -> None:
    for number in (*range(0x80, 0x2600), 0xF8FF, 0xFB01, 0xFB02, 0xFFFD):
        text = f"{before}{chr(number)}{behind}"
        if ftfy.badness.is_bad(text):
            assert texts.UNDECODED.search(text), ascii(text)


@settings(deadline=None, max_examples=50)
@example("www.a.example", "")
@example("%d", "")
@example("a@b.example", "")
@given(st.from_regex(texts.PLACEHOLDER, fullmatch=True), st.text("a {}%<>&@.:/w", max_size=5))
def test_each_placeholder_is_found_in_a_text(placeholder: str, text: str) -> None:
    text = f"{text} {placeholder} {text}"
    assert bool(texts.placeholders(text)) is bool(texts.PLACEHOLDER.search(text))


@given(st.text("a@ ▁\t.", max_size=8))
def test_words_in_pieces_are_found(text: str) -> None:
    assert texts.is_cut(text) is bool(re.search(texts.CUT, text))
