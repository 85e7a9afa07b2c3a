"""What is found wrong with pairs, and what is not."""

import json
import re
from itertools import permutations
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import heed
from heedful.cli.data import told
from heedful.data import large
from heedful.data.text import pairs as pairs_in_files
from heedful.data.text.pairs import Pairs
from heedful.data.text.quality import CHECKS
from heedful.data.text.quality import report as quality_report
from heedful.data.text.quality.overlap import Overlap
from heedful.data.text.quality.report import examine, leaving
from heedful.data.text.quality.told import in_three_lines
from heedful.data.text.reading import read_whole
from heedful.errors import InputError
from heedful.verbs.data import check_data, write_cleaned

GOOD = [
    ("The small cat is sleeping under the old table.", "Die kleine Katze schläft unter dem alten Tisch."),
    ("My sister bought 1,250 apples on 3 May 2019.", "Meine Schwester kaufte am 3. Mai 2019 1.250 Äpfel."),
    (
        "Open {name} or press <b>OK</b> at https://a.example/x.",
        "Öffnen Sie {name} oder <b>OK</b> (https://a.example/x).",
    ),
    ("It costs 3.5 million euros.", "Es kostet 3,5 Millionen Euro."),
    ("I'm OK.", "Mir geht's gut."),
    ("Berlin", "Berlin!"),
    ("The train to the north leaves at 10:45.", "Der Zug nach Norden fährt um 10.45 Uhr."),
]
WRONG = {
    "copies": ("This sentence was never translated at all.", "This sentence was never translated at all."),
    "wrong_language": (
        "The weather was very good yesterday afternoon.",
        "Le temps était vraiment très beau hier après-midi.",
    ),
    "mojibake": ("The beautiful green door is open today.", "Die schÃ¶ne grÃ¼ne TÃ¼r ist heute geÃ¶ffnet."),
    "pieces": ("The door is now open.", "Die T@@ ür ist jetzt offen."),
    "control": ("The door is open.", "Die Tür ist \x07offen."),
    "invisible": ("The door is\u200b open.", "Die Tür ist offen."),
    "decomposed": ("The door is open.", "Die Tu\u0308r ist offen."),
    "printed_forms": ("The \ufb01rst door is open.", "Die erste Tür ist offen."),
    "entities": ("The caf&eacute; is open.", "Das Caf&eacute; ist offen."),
    "length_ratio": ("Yes, of course we do.", "Ja. " + "Das ist ein Satz, der hier nicht steht und zu lang ist. " * 4),
    "numbers": ("The bridge was built in 1987.", "Die Brücke wurde 1978 gebaut."),
    "placeholders": ("Delete %s and <i>all</i> of it?", "%d und alles davon löschen?"),
    "empty": ("Something is written here.", "@@ -- !"),
}


def of(pairs: list[tuple[str, str]]) -> Pairs:
    return Pairs([one for one, _ in pairs], [other for _, other in pairs], "made")


def found(pairs: list[tuple[str, str]], *tests: list[tuple[str, str]]) -> dict[int, list[str]]:
    return examine(of(pairs), [of(part) for part in tests], source="en", target="de").faults


def test_good_pairs_have_no_fault():
    assert found(GOOD) == {}
    assert "numbers" not in leaving()


@pytest.mark.parametrize(
    ("languages", "one", "other", "note"),
    [
        ("en fr", "The train leaves at 10:50 a.m.", "Le train part à 10 h 50.", ""),
        ("en fr", "The train leaves at 2:30 p.m.", "Le train part à 14h30.", ""),
        ("en de", "It costs 1,250.50 euros.", "Es kostet 1.250,50 Euro.", ""),
        ("en de", "It weighs 1.250 kilograms.", "Es wiegt 1.250 Kilogramm.", "-1.250 +1.250"),
        ("en de", "They have 12 cows.", "Sie haben zwölf Kühe.", ""),
        ("fr en", "Il habite au 13.", "He lives at thirteen.", ""),
        ("en ar", "In 2024 there were 1,250 of them.", "في ٢٠٢٤ كان عددهم ١٬٢٥٠", ""),  # noqa: RUF001
        ("en de", "Press {10} on 2024-03-12.", "Am 12.03.2024 {10} drücken.", ""),
        ("en de", "It holds 25 and 25 more.", "Es fasst 25.", "-25"),
        ("en de", "It holds 25.", "Es fasst 25 und 250.", "+250"),
        ("en fr", "The train leaves at 10:50 a.m.", "Le train part à 10 h 15.", "-10:50 +10 h 15"),
    ],
)
def test_numbers_are_compared_by_value(languages: str, one: str, other: str, note: str) -> None:
    source, target = languages.split()
    told = examine(of([(one, other)]), source=source, target=target).examples.get("numbers", [])
    assert [example.note for example in told] == [note] * bool(note)


@pytest.mark.parametrize("fault", WRONG)
def test_each_fault_is_found_alone(fault: str):
    assert found([*GOOD[:5], WRONG[fault]]) == {5: [fault]}


@pytest.mark.parametrize(
    ("code", "right", "wrong"),
    [
        ("fr", "Le temps était vraiment très beau hier après-midi.", "Das Wetter war gestern Nachmittag sehr schön."),
        ("ru", "Вчера днём была очень хорошая погода в городе.", "Das Wetter war gestern Nachmittag sehr schön."),
        (
            "el",
            "Χθες το απόγευμα έκανε πολύ καλό καιρό στην πόλη μας.",
            "Вчера днём была очень хорошая погода в городе.",
        ),
        (
            "ja",
            "昨日の午後はとても天気が良かったので公園へ行きました。",
            "The weather was very good yesterday afternoon.",
        ),
        ("ar", "كان الطقس جميلا جدا بعد ظهر أمس في المدينة.", "The weather was very good yesterday afternoon."),
    ],
)
def test_languages(code: str, right: str, wrong: str):
    pairs = of([("The weather was very good yesterday afternoon, they say.", text) for text in (right, wrong)])
    assert "wrong_language" not in examine(pairs, source="en", target=code).faults.get(0, [])
    assert "wrong_language" in examine(pairs, source="en", target=code).faults[1]


WORDS = {
    "en": ["House", "Lake", "River", "School", "Red book", "He"],
    "ru": ["Дом", "Озеро", "Река", "Школа", "Красная книга", "Он"],
    "el": ["Σπίτι", "Λίμνη", "Ποτάμι", "Σχολείο", "Βιβλίο", "Αυτός"],
    "ar": ["بيت", "بحيرة", "نهر", "مدرسة", "كتاب", "هو"],
    "he": ["בית", "אגם", "נהר", "בית ספר", "ספר אדום", "הוא"],
    "hi": ["घर", "झील", "नदी", "विद्यालय", "लाल किताब", "वह"],
    "th": ["บ้าน", "ทะเลสาบ", "แม่น้ำ", "โรงเรียน", "หนังสือ", "เขา"],
    "zh": ["房子", "湖泊", "河流", "学校", "红皮书", "他们"],
    "ja": ["いえ", "みずうみ", "ながれ", "がっこう", "レッドリスト", "かれ"],
    "ko": ["집은", "호수", "하천", "학교", "빨간 책", "그는"],
    "ka": ["სახლი", "ტბა", "მდინარე", "სკოლა", "წიგნი", "ის"],
}
WAYS = pytest.mark.parametrize(("source", "target"), [*permutations(WORDS, 2)])


@WAYS
def test_short_texts_whose_columns_are_swapped_are_in_another_language(source: str, target: str):
    swapped = of([*zip(WORDS[target], WORDS[source], strict=True)])
    assert examine(swapped, source=source, target=target).counts["wrong_language"] == 6
    right = of([*zip(WORDS[source], WORDS[target], strict=True)])
    assert examine(right, source=source, target=target).counts["wrong_language"] == 0


@WAYS
def test_short_texts_of_which_some_are_swapped_are_in_another_language(source: str, target: str):
    rows = [*zip(WORDS[source], WORDS[target], strict=True)]
    for names in ((source, target), ("source", "target")):
        faults = examine(of([*rows[:4], *(row[::-1] for row in rows[4:])]), source=names[0], target=names[1]).faults
        if {source, target} != {"zh", "ja"} or names[0] == source:  # not told apart where no language is named
            assert {i for i, own in faults.items() if "wrong_language" in own} == {4, 5}


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("ru", "Windows"),
        ("ru", "угол λ и β"),
        ("en", "The word «дом» is Russian."),
        ("en", "5 µm Ω é ﹕ ™ 😀"),
        ("ja", "東京"),
        ("ja", "\uff2e\uff28\uff2b\uff11\uff12"),
        ("ko", "大韓民國"),
        ("sr", "Kuća"),
        ("sr", "Кућа"),
        ("fa", "می\u200cکنم"),
        ("hi", "क्\u200dष"),
        ("th", "สวัสดี\u200bครับ"),
        ("fr", "Oui\u202f! 10\u00a0km"),
        ("en", "👩\u200d👧 ❤\ufe0f"),
        ("ar", "محمد ﷺ"),
        ("tlh", "Qapla'"),
    ],
)
def test_what_is_meant_is_no_fault(code: str, text: str):
    rows = [*zip(WORDS["en"], WORDS.get(code, [text] * 6), strict=True), ("something else", text)]
    assert not {"wrong_language", "invisible", "printed_forms"} & {*examine(of(rows), target=code).counts}


@pytest.mark.parametrize("code", ["ru", "el", "ar", "th"])
def test_a_column_in_latin_that_is_called_by_a_language_of_another_script(code: str):
    report = examine(
        of([*zip(WORDS["en"], ["Haus", "See", "Fluss", "Schule", "Buch", "Er"], strict=True)]), target=code
    )
    assert report.counts["wrong_language"] == 6
    assert report.examples["wrong_language"][0].note == "Latin letters"


ODD = st.text(
    [*"ab &;e@▁", "\x07", "\ufeff", "\u200b", "\u200c", "é", "\u0301", "\ufb01", "\uff21", "東", "д", "\n"], max_size=5
)


@given(st.lists(st.tuples(ODD, ODD), max_size=12))
def test_what_is_not_looked_at_closely_has_no_such_fault(rows: list[tuple[str, str]]):
    pairs = of([*rows, *[("a house", "ein Haus")] * 3])
    found = examine(pairs, source="en", target="de").faults
    with mock.patch.object(quality_report, "_odd", lambda pairs, kinds, numbers: {*range(len(numbers))}):
        assert examine(pairs, source="en", target="de").faults == found


def test_pairs_that_come_again_and_those_of_the_test():
    pairs = [*GOOD[:2], ("the small  cat is sleeping under the old table.", GOOD[0][1]), ("Wholly new.", "Ganz neu.")]
    assert found(pairs) == {2: ["duplicates"]}
    near = ("The small cat is sleeping under the old tables!", "Etwas ganz anderes als das, was dort steht.")
    assert found([*pairs[:2], near], [GOOD[0]]) == {0: ["overlap_test"], 2: ["near_overlap_test"]}


def test_one_source_with_many_targets():
    pairs = [("Go.", f"Geh {chr(97 + i)}") for i in range(11)]
    assert found(pairs) == {i: ["many_targets"] for i in range(11)}
    assert len(examine(of(pairs), source="en", target="de").examples["many_targets"]) == 1


@given(st.lists(st.text("abcde ", min_size=20, max_size=40), min_size=1, max_size=6), st.text("abcde ", max_size=40))
def test_near_is_what_comparing_with_each_would_find(texts: list[str], text: str):
    def pieces(one: str) -> set[str]:
        own = one.replace(" ", "")
        return {own[i : i + 5] for i in range(len(own) - 4)} if len(own) >= 20 else set()

    def alike(one: set[str], other: set[str]) -> bool:
        return bool(one) and len(one & other) >= 0.8 * max(len(one), len(other))

    assert Overlap(texts).near(text) == any(alike(pieces(text), pieces(other)) for other in texts)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([*[one for one, _ in GOOD], "", "12"]), st.sampled_from([t for _, t in WRONG.values()])
        ),
        min_size=1,
        max_size=12,
    )
)
def test_what_is_kept_and_what_is_left_out_are_all(tmp_path_factory, pairs: list[tuple[str, str]]):
    folder: Path = tmp_path_factory.mktemp("pairs")
    rows = [(one, " ".join(other.split())) for one, other in [*pairs, GOOD[0]]]
    (folder / "p.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in rows), "utf-8")
    checked = check_data(folder / "p.tsv", source="en", target="de")
    beside = write_cleaned(checked, folder / "clean.tsv")
    kept = [tuple(line.split("\t")) for line in (folder / "clean.tsv").read_text("utf-8").split("\n")[1:-1]]
    gone = [line.split("\t") for line in beside.read_text("utf-8").split("\n")[1:-1]]
    assert sorted([*kept, *((one, other) for one, other, _, _ in gone)]) == sorted(rows)
    assert len(kept) == checked.record["kept"]
    assert len(kept) + len(gone) == checked.record["pairs"] == len(rows)
    for one, other, where, why in gone:
        assert where.startswith(f"{folder}/p.tsv:")
        assert rows[int(where.rpartition(":")[2]) - 1] == (one, other)
        assert {*why.split(", ")} <= {name for name, check in CHECKS.items() if check.leaves}


@pytest.mark.parametrize("kind", ["tsv", "two sides", "jsonl", "folder"])
def test_what_is_kept_in_files_has_the_same_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str):
    rows = [*GOOD, *WRONG.values(), *GOOD[:3], *(("Go.", f"Geh {chr(97 + i)}") for i in range(11))] * 2
    rows = [(one, " ".join(other.split())) for one, other in rows]
    lines = [f"{one}\t{other}\n" for one, other in rows]
    given = [tmp_path / "p.tsv"]
    if kind == "two sides":
        given = [tmp_path / "p.en", tmp_path / "p.de"]
        for side, path in enumerate(given):
            path.write_text("".join(f"{row[side]}\n" for row in rows))
    elif kind == "jsonl":
        given = [tmp_path / "p.jsonl"]
        given[0].write_text("".join(f"{json.dumps({'en': one, 'de': [other, 'Oh.']})}\n" for one, other in rows))
    elif kind == "folder":
        given = [tmp_path / "data"]
        given[0].mkdir()
        (given[0] / "train.tsv").write_text("".join(["en\tde\n", *lines]))
        (given[0] / "test.tsv").write_text("".join(["en\tde\n", *lines[1:3]]))
    else:
        given[0].write_text("".join(lines))

    def outcome(folder: Path) -> list[object]:
        folder.mkdir()
        checked = check_data(given, source="en", target="de")
        beside = write_cleaned(checked, folder / "c.tsv")
        files = [path.read_bytes() for path in (folder / "c.tsv", beside)]
        return [checked.record, checked.left_out, told(checked), files]

    known = outcome(tmp_path / "known")
    assert sum(known[0][name] for name in ("duplicates", "many_targets")) > 20
    monkeypatch.setattr(pairs_in_files, "HELD", 200)
    monkeypatch.setattr(large, "BLOCK", 3)
    assert outcome(tmp_path / "found") == known


def test_what_leaves_can_be_chosen(tmp_path: Path):
    path = tmp_path / "p.tsv"
    path.write_text("".join(f"{one}\t{other}\n" for one, other in [*GOOD[:5], WRONG["numbers"], WRONG["copies"]]))
    assert check_data(path, source="en", target="de").left_out == {6: ["copies"]}
    assert check_data(path, source="en", target="de", keep=["copies"], drop=["numbers"]).left_out == {5: ["numbers"]}
    with pytest.raises(InputError, match="no check is called 'nonsense'"):
        check_data(path, drop=["nonsense"])
    with pytest.raises(InputError, match=r"a \.tsv file"):
        write_cleaned(check_data(path), tmp_path / "clean.csv")


def test_a_training_says_in_three_lines_what_is_wrong(tmp_path: Path):
    path = tmp_path / "p.tsv"
    path.write_text(
        "".join(f"{one} {i}\t{other} {i}\n" for i in range(40) for one, other in (GOOD[0], WRONG["mojibake"]))
    )
    read = read_whole(path, source="en", target="de")
    much, wrong, known = in_three_lines(read.train, [of(GOOD[1:2])], "en", "de")
    assert re.fullmatch(r"80 pairs to train on, of [\d,]+ and [\d,]+ words, in en and de", much)
    assert wrong == "of 80 pairs looked at, 40 have text that was decoded wrongly: heed data check shows all"
    assert known == "of as many, none has a text of the validation or test data, or nearly one"
    clean = in_three_lines(of(GOOD[:5] * 10), [of(GOOD[1:2])], "en", "de")
    assert clean[1:] == [
        "of 50 pairs looked at, hardly any has a fault: heed data check shows all",
        "of as many, 10 have a text of the validation or test data, and 0 nearly one",
    ]


def test_each_direction_has_its_own_languages_and_lengths(tmp_path: Path):
    german = [f"Der alte Hund läuft am Morgen sehr schnell durch den Garten der Familie {n}" for n in range(100, 130)]
    french = [f"Le vieux chien court très vite le matin à travers le jardin {n}" for n in range(100, 110)]
    english = [f"The old dog runs very quickly through the garden of the family {n}" for n in range(100, 130)]
    rows = [f"{one}\t{other}\ten\tde" for one, other in zip(english, german, strict=True)]
    rows += [f"{one}\t{other}\ten\tfr" for one, other in zip(english, french, strict=False)]
    (tmp_path / "p.tsv").write_text("\n".join(["source\ttarget\tsource_lang\ttarget_lang", *rows, rows[-1], ""]))
    checked = check_data(tmp_path / "p.tsv")
    assert dict(checked.report.counts) == {"duplicates": 1}
    assert checked.report.languages == ("en", "de, fr")
    write_cleaned(checked, tmp_path / "clean.tsv")
    again = read_whole(tmp_path / "clean.tsv")
    assert again.directions == [("en", "de"), ("en", "fr")]
    assert (len(again.train), [*again.train.ways]) == (40, [0] * 30 + [1] * 10)


@pytest.mark.parametrize("out", ["clean.tsv", "linked.tsv", "a.tsv"])
def test_data_that_was_read_is_not_written_over(tmp_path: Path, out: str):
    text = "".join(f"{one}\t{other}\n" for one, other in GOOD)
    read = tmp_path / ("a.left-out.tsv" if out == "a.tsv" else "clean.tsv")
    read.write_text(text)
    (tmp_path / "linked.tsv").symlink_to(read)
    with pytest.raises(InputError, match="is read, and would be written over"):
        write_cleaned(check_data(read), tmp_path / out)
    assert read.read_text() == text
    assert not (tmp_path / "a.tsv").exists()


def test_columns_by_number_are_found_again_in_what_is_left(tmp_path: Path):
    (tmp_path / "p.tsv").write_text("".join(f"{one}\tx\t{other}\n" for one, other in GOOD))
    checked = check_data(tmp_path / "p.tsv", source="1", target="3")
    write_cleaned(checked, tmp_path / "clean.tsv")
    assert read_whole(tmp_path / "clean.tsv").train.source == [one for one, _ in GOOD]


def test_a_text_that_is_just_near_enough():
    text = "abcdefghijklmnopqrstuvwx"  # 20 pieces, of which it may lack 4
    assert Overlap([text]).near(f"{text[:20]}1234")
    assert not Overlap([text]).near(f"{text[:19]}12345")


def test_all_references_are_in_what_is_left(tmp_path: Path):
    (tmp_path / "p.jsonl").write_text('{"en": "The house.", "de": ["Das Haus.", "Ein Haus."]}\n')
    write_cleaned(check_data(tmp_path / "p.jsonl"), tmp_path / "clean.tsv")
    assert read_whole(tmp_path / "clean.tsv").train.target == ["Das Haus.", "Ein Haus."]


@pytest.mark.parametrize("way", ["", ":en>de"])
def test_what_is_said_behind_a_path_is_in_what_is_left(tmp_path: Path, way: str):
    for name in "ab":
        (tmp_path / f"{name}.tsv").write_text("".join(f"{one} {name}\t{other} {name}\n" for one, other in GOOD))
    write_cleaned(check_data([f"{tmp_path}/a.tsv{way}#formal", f"{tmp_path}/b.tsv{way}"]), tmp_path / "clean.tsv")
    again = read_whole(tmp_path / "clean.tsv", tag="kind").train
    assert [*again.tags] == ["formal"] * len(GOOD) + [""] * len(GOOD)


@pytest.mark.parametrize("terminal", [True, False])
def test_how_far_it_is_is_said_at_a_terminal_alone(tmp_path: Path, monkeypatch, capsys, terminal: bool):
    (tmp_path / "pairs.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in GOOD))
    monkeypatch.setenv("TTY_COMPATIBLE", str(int(terminal)))
    assert heed("data", "check", tmp_path / "pairs.tsv", "--json") == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["pairs"] == len(GOOD)
    assert ("100%" in printed.err) is terminal
