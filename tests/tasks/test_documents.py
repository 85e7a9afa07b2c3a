"""Documents are translated as wholes: their sentences are, their tags stay theirs, and nothing else changes."""

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from commands import heed
from documents import BROKEN, DOCUMENTS, W, run, word
from heedful.data.documents.hypertext import hypertext_parts
from heedful.data.documents.passages import Mark, Passage, plain
from heedful.data.documents.read import read_document
from heedful.data.protected import lost, masked, protected_in, unmasked, without
from heedful.decode.settings import DecodingOptions
from heedful.errors import InputError, MissingError
from heedful.tasks.translate.cli import translate as heed_translate
from heedful.tasks.translate.documents.files import translate_documents
from heedful.tasks.translate.documents.passages import translate_passages
from heedful.tasks.translate.pairs.links import aligned
from heedful.tasks.translate.use import Translator
from heedful.tasks.translate.wishes import wishes_of
from heedful.verbs.use import ask
from made import with_about
from saying import says_what_it_is_told
from serving import opened, translator

PAGE = """<html><body><p class="x">ba <b>de gi</b>. Ko lu <i>ma</i>!<br>
pi &amp; ro</p> <!-- su --><pre>ba</pre><p>ba <b>de gi</b>.</p></body></html>
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return opened(translator(tmp_path_factory.mktemp("runs") / "made", "low", "high", seed=2))


def page(text: str) -> list[Passage]:
    return [part for part in hypertext_parts(text, "html") if isinstance(part, Passage)]


def test_a_document_is_translated(own: Translator, tmp_path: Path) -> None:
    path, out = tmp_path / "a.html", tmp_path / "b.html"
    path.write_text(PAGE)
    (written,) = translate_documents(own, [path], out, DecodingOptions())
    made = out.read_text()
    assert (written.passages, written.marks, written.out) == (3, 6, str(out))
    assert sorted(re.findall("<[^>]*>", made)) == sorted(re.findall("<[^>]*>", PAGE))
    whole = re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]*>", "", made)))
    for sentence in ("ba de gi.", "Ko lu ma!", "pi & ro"):
        assert re.sub(r"\s+", " ", own.translate(sentence)).strip() in whole


def test_a_document_that_says_other_languages_is_told(
    own: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = with_about(own, source="en", target="French")
    unit = '<body><trans-unit id="1"><source>ba</source></trans-unit></body>'
    head = 'msgid ""\nmsgstr "Language: {}\\n"\n\nmsgid "ba"\nmsgstr ""\n'
    made = {
        "right.xlf": f'<xliff version="1.2"><file source-language="en-GB" target-language="fr">{unit}</file></xliff>',
        "open.xlf": f'<xliff version="1.2"><file source-language="en">{unit}</file></xliff>',
        "other.xlf": f'<xliff version="1.2"><file source-language="de" target-language="es">{unit}</file></xliff>',
        "two.xlf": f'<xliff version="1.2"><file source-language="de" target-language="fr">{unit}</file>'
        f'<file source-language="en" target-language="fr">{unit}</file></xliff>',
        "right.po": head.format("fr_CA"),
        "other.po": head.format("es"),
    }
    told = {}
    for name, text in made.items():
        (tmp_path / name).write_text(text)
        (written,) = translate_documents(own, [tmp_path / name], tmp_path / f"out-{name}", DecodingOptions(longest=4))
        told[name] = [line.removeprefix(f"{tmp_path / name}: ") for line in written.warnings if "this model" in line]
    ways = "it is to be translated {0} {1}, and this model translates {0} {2}"
    assert told == {
        "right.xlf": [],
        "open.xlf": [],
        "other.xlf": [ways.format("from", "de", "en"), ways.format("to", "es", "French")],
        "two.xlf": [ways.format("from", "de", "en")],
        "right.po": [],
        "other.po": [ways.format("to", "es", "French")],
    }


def test_a_document_says_the_language_that_it_is_in_afterwards(tmp_path: Path) -> None:
    """A whole page in place of its own, a PO where it says none; nothing else is changed."""
    message = '\n\nmsgid "ba"\nmsgstr "'
    head = 'msgid ""\nmsgstr ""\n"Language: {}\\n"'
    begins = {
        "page.html": ('<!doctype html>\n<HTML data-x="a lang=x" lang={0} xml:lang="{0}"><p lang="en">', "en", "fr"),
        "bare.html": ("<html><p>", "", ""),
        "part.html": ('<div lang="{}">', "en", "en"),
        "open.po": (head + message, "", "fr"),
        "told.po": (head + message, "fr_CA", "fr_CA"),
        "none.po": ('msgid "ko"\nmsgstr ""\n"Language: {}\\n"' + message, "", ""),
    }
    languages = {"tokens": {"de": 40, "fr": 91}, "target": "before", "directions": ["en>de", "en>fr"]}
    several = opened(translator(tmp_path / "several", "en", "de", languages=languages, before=[40]))
    (tmp_path / "out").mkdir()
    for name, (begin, before, after) in begins.items():
        path = tmp_path / name
        path.write_text(begin.format(before) + ('"\n' if path.suffix == ".po" else "ba"))
        several.translate_files(path, tmp_path / "out" / name, to="fr", longest=4)
        assert (tmp_path / "out" / name).read_text().startswith(begin.format(after)), name


def test_terms_of_a_glossary_hold_in_documents(own: Translator, tmp_path: Path) -> None:
    path, out = tmp_path / "a.html", tmp_path / "b.html"
    path.write_text(PAGE)
    wishes = wishes_of((), (), {"lu": "PIPI"}, own.languages)
    list(translate_documents(own, [path], out, DecodingOptions(), wishes))
    assert len(re.findall("pipi", re.sub("<[^>]*>", "", out.read_text()), re.IGNORECASE)) == 1


def test_what_is_to_be_read_first_is_told_with_its_line(own: Translator, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("ba de\n\nko {n} lu\n")
    (written,) = translate_documents(own, [path], tmp_path / "b.txt", DecodingOptions(), flag=1.0)
    assert written.flagged == 2
    assert [line.split(": ")[0] for line in written.warnings if "confidence 0." in line] == [f"{path}:1", f"{path}:3"]
    (written,) = translate_documents(own, [path], tmp_path / "b.txt", DecodingOptions(), flag=0.0)
    assert written.flagged == 0
    (written,) = translate_documents(own, [path], tmp_path / "b.txt", DecodingOptions())
    assert written.flagged is None


def test_a_paragraph_of_word_is_told_by_its_number_and_its_beginning(own: Translator, tmp_path: Path) -> None:
    """Lines of the XML inside are nothing that a person sees."""
    path = tmp_path / "a.docx"
    note = f'<w:footnotes {W}><w:footnote w:id="2"><w:p>{run("Ba ko.")}</w:p></w:footnote></w:footnotes>'
    path.write_bytes(word(**{"word/footnotes.xml": note}))
    (written,) = translate_documents(own, [path], tmp_path / "b.docx", DecodingOptions(), flag=1.0)
    told = [line.split(": confidence")[0] for line in written.warnings if "confidence 0." in line]
    assert [*dict.fromkeys(told)] == [
        f"{path}: paragraph 1, 'ba de'",
        f"{path}: paragraph 2, 'gi ko lu & ma'",
        f"{path}: paragraph 2, 'ne pi ro. Su 12 ba'",
        f"{path}: footnotes, paragraph 1, 'Ba ko.'",
    ]


def test_what_is_told_of_two_forms_is_told_once(own: Translator, tmp_path: Path) -> None:
    (tmp_path / "a.po").write_text('msgid "ba"\nmsgid_plural "ba"\nmsgstr[0] ""\nmsgstr[1] ""\n')
    (written,) = translate_documents(own, [tmp_path / "a.po"], tmp_path / "b.po", DecodingOptions(), flag=1.0)
    assert written.flagged == 2
    assert len(written.warnings) == 1


def test_words_of_a_document_are_linked(own: Translator, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.md"
    path.write_text("ba **de** gi. Ko\n\n- 12\n")
    (written,) = translate_documents(own, [path], tmp_path / "b.md", DecodingOptions(), align=True)
    first, second = written.alignments
    assert first["source"] == "ba de gi. Ko"
    assert [j for _, j in first["alignment"]] == [*range(len(first["target"].split()))]
    assert {i for i, j in first["alignment"]} <= {0, 1, 2, 3}
    assert second == {"source": "12", "target": "12", "alignment": [(0, 0)]}
    run, out = Path(str(own.run)), tmp_path / "c.md"
    heed_translate(run, file=[path], out=out, aligned=True)
    assert capsys.readouterr().out.splitlines()[1] == "12\t12\t0-0"
    with pytest.raises(InputError, match="every sentence of the document"):
        heed_translate(run, file=[path], out=out, require=["x"])


def test_a_translator_that_says_the_same_changes_no_byte(
    own: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says_what_it_is_told(lambda text: [text], monkeypatch)
    files = {"a.html": PAGE, "a.md": "# *Ba* de\r\n\r\n- ba [gi](x) {v}.  Ko\r\n", "a.txt": "ba de. gi\n\n ko  lu"}
    for name, text in files.items():
        (tmp_path / name).write_bytes(text.encode())
    list(translate_documents(own, [tmp_path / name for name in files], tmp_path / "out", DecodingOptions()))
    for name, text in files.items():
        assert (tmp_path / "out" / name).read_bytes() == text.encode()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_line_breaks_that_a_model_learnt_tear_nothing(
    own: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path, made = tmp_path / name, list[bytes]()
    path.write_bytes(DOCUMENTS[name])
    for number, line_end in enumerate((" ", "\n", "\r\n \r\n", "\u2028")):
        says_what_it_is_told(
            lambda text, line_end=line_end: [text.upper().replace(" ", line_end) + line_end.strip(" ")],
            monkeypatch,
        )
        out = tmp_path / f"{number}{path.suffix}"
        list(translate_documents(own, [path], out, DecodingOptions()))
        made.append(out.read_bytes())
    assert made[0] != DOCUMENTS[name]
    assert [one == made[0] for one in made] == [True] * 4


def test_sentences_are_asked_one_by_one_and_once(own: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = says_what_it_is_told(lambda text: [text.upper()], monkeypatch)
    parts = page("<p>Ba de. Gi <b>ko</b>! Ba de.</p><p>12</p><p>Gi ko!</p>")
    made = [plain(best.placed) for (best,) in translate_passages(own, parts, DecodingOptions())]
    assert asked == ["Ba de.", "Gi ko!"]
    assert made == ["BA DE. GI <b>KO</b>! BA DE.", "12", "GI KO!"]


def test_words_are_aligned_by_what_the_model_looked_at(own: Translator) -> None:
    made, empty = aligned(own, [("ba, de 3 gi", "GI DE 3, BA."), ("ba", "")])
    assert len(made.source) == 5
    assert len(made.target) == len(made.shares) == 6
    assert made.shares[2] == {3: 1.0} or made.shares[2][3] > 0.99, "a number is itself"
    assert [*made.shares[3]] == [1], "a sign belongs to a sign"
    assert all(sum(row.values()) == pytest.approx(1) for row in made.shares[:5])
    assert not empty.shares


@pytest.mark.parametrize(
    ("text", "placeholders", "numbers"),
    [
        ("Hi {name}, %s and %(x)d: ${v} {{ w }} {0}", ("{name}", "%s", "%(x)d", "${v}", "{{ w }}", "{0}"), ()),
        ("<b>x</b> &nbsp; a < b", ("<b>", "</b>", "&nbsp;"), ()),
        ("See https://a.b/c?d=1. Or www.x.org, a.b@c.de!", ("https://a.b/c?d=1", "www.x.org", "a.b@c.de"), ()),
        ("{% if x %}Hi{% endif %} 5 %", ("{% if x %}", "{% endif %}"), ("5",)),
        ("50% of 1,000.5 and 3", (), ("50", "10005", "3")),
        ("%#@files@ of %1$#@n@, %{a} 5", ("%#@files@", "%1$#@n@", "%{a}"), ("5",)),
        ("On {d, date, short} at {n, number}, {x, y}", ("{d, date, short}", "{n, number}"), ()),
        ("<0>x</0> <1/> 3 < 4", ("<0>", "</0>", "<1/>"), ("3", "4")),
        ('[caption id="a" x="1"]x[/caption] [a] [b c]', ('[caption id="a" x="1"]', "[/caption]"), ()),
        ("100 %1$s %.2f 5 % so", ("%1$s", "%.2f"), ("100", "5")),
        ("Ba de.\\nGi ko.\\r\\n\\t {x} 3 \\n", ("\\n", "\\r\\n\\t", "{x}", "\\n"), ("3",)),
        ("C:\\new\\tools 3 \\textbf", (), ("3",)),
        (
            "v2.10, 0.85.x, 1.2.3-beta.1, 10.0.0.1. In 2.10 1.234.567.890 12.03.2024 v2 3.x2",
            ("v2.10", "0.85.x", "1.2.3-beta.1", "10.0.0.1"),
            ("210", "1234567890", "12032024", "2", "3", "2"),
        ),
        ("3 050 €, 1 100,50 € à 14 h 35, en 2020 300", (), ("3050", "110050", "1435", "2020", "300")),
    ],
)
def test_what_is_protected(text: str, placeholders: tuple[str, ...], numbers: tuple[str, ...]) -> None:
    assert protected_in(text) == (placeholders, numbers)
    hidden = masked(text)
    assert hidden is not None
    assert not protected_in(hidden[0]).placeholders
    assert unmasked(*hidden) == text
    assert lost(text, text) == []
    assert "%" not in without(text)[0] or "%" in re.sub(r"%[\w(.]\S*", "", text)


@pytest.mark.parametrize(
    ("says", "expected", "warned"),
    [
        (lambda text: [f"X {text}"], "X ba {n} de.", False),  # it copies
        (lambda text: ["lost", f"Y {text}"], "Y ba {n} de.", False),  # the second best does
        (lambda text: ["lost" if "{" in text else f"Z {text}"], "Z ba {n} de.", False),  # it copies a number
        (lambda text: ["lost"], "{n}", True),  # it copies nothing
    ],
)
def test_a_placeholder_is_never_lost(
    own: Translator, monkeypatch: pytest.MonkeyPatch, says: Callable[[str], list[str]], expected: str, warned: bool
) -> None:
    says_what_it_is_told(says, monkeypatch)
    made = own.search("ba {n} de.")
    assert expected in made.text
    assert made.text.count("{n}") == 1
    assert bool(made.warnings) == warned


def test_a_number_that_is_lost_is_told(own: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    says_what_it_is_told(lambda text: ["ba 4", "ba 1.000"], monkeypatch)
    assert own.search("x 1,000").text == "ba 1.000"
    says_what_it_is_told(lambda text: ["ba"], monkeypatch)
    (warning,) = own.search("x 7").warnings
    assert warning == "the number 7 is not in the translation: 'ba'"


def test_what_is_longer_than_all_that_was_learnt_is_halved(own: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = says_what_it_is_told(lambda text: [text.upper()], monkeypatch)
    own = with_about(own, source_tokens={"longest": 12, "centile_99": 12})
    text = "ba de gi ko, lu ma ne pi ro su ba de gi ko lu ma."
    passage = Passage(text, (Mark(13, "<x/>"),), text)
    ((said,),) = translate_passages(own, [passage], DecodingOptions())
    assert asked[0] == "ba de gi ko,", "where a clause ends"
    assert all(len(ids) <= 12 for ids in own.source.encode(asked)), "or a word, where it must"
    assert plain(said.placed).replace("<x/>", "") == text.upper()
    asked.clear()
    own = with_about(own, longest_source=12)
    ((said,),) = translate_passages(own, [passage], DecodingOptions())
    assert all(len(ids) <= 12 for ids in own.source.encode(asked)), "or a word, where it must"
    assert plain(said.placed).replace("<x/>", "") == text.upper()


def test_a_long_text_is_translated_sentence_by_sentence(own: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    own = with_about(own, source_tokens={"longest": 12, "centile_99": 12})
    sentences = ["Ba de gi.", "Ko lu ma!", "Ne pi ro."]
    best = own.search(sentences, beam=2, n_best=2)
    (found,) = ask(own, "translate", ["  ".join(sentences)], {"decoding": {"n_best": 2}})
    assert found["text"] == "  ".join(one.text for one in best)
    assert found["hypotheses"][1]["text"] == "  ".join(one.hypotheses[1][0] for one in best)
    assert found["score"] == pytest.approx(sum(one.score for one in best) / 3)
    assert "warning" not in found
    short = ask(own, "translate", ["Ba de."])[0]
    assert "warning" not in short
    assert short["text"] == own.translate("Ba de.")
    own = with_about(own, scores="rouge")
    (whole,) = ask(own, "translate", ["  ".join(sentences)])
    assert "its answer may be wrong" in whole["warning"], "a summary is of the whole"


@pytest.mark.parametrize("sentences", [True, False])
def test_a_blank_without_a_break_is_kept_at_both_ends(
    own: Translator, monkeypatch: pytest.MonkeyPatch, sentences: bool
) -> None:
    asked = says_what_it_is_told(lambda text: [text.upper()], monkeypatch)
    passage = Passage("\u00a0ba de\u00a0")
    ((said,),) = translate_passages(own, [passage], DecodingOptions(), sentences=sentences)
    assert said.text == "\u00a0BA DE\u00a0"
    assert asked == ["ba de"]


def test_a_soft_hyphen_is_no_part_of_a_word(own: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = says_what_it_is_told(lambda text: [text.upper()], monkeypatch)
    ((said,),) = translate_passages(own, [Passage("ba\u00adde gi", (Mark(6, "<x/>"),))], DecodingOptions())
    assert asked == ["bade gi"]
    assert plain(said.placed) == "BADE <x/>GI"


def test_a_server_asks_for_so_many_and_no_more(own: Translator) -> None:
    (found,) = ask(own, "fragment", ["ba <b>de</b> gi"], {"markup": "html", "n": 2})
    assert found["text"] == found["texts"][0]
    assert all(text.count("<b>") == text.count("</b>") == 1 for text in found["texts"])
    with pytest.raises(InputError, match="129 translations of each"):
        ask(own, "fragment", ["ba"], {"n": 129})


def test_the_command_writes_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = translator(tmp_path / "run", "low", "high", seed=2)
    files = [tmp_path / name for name in ("a.txt", "b.md")]
    for path in files:
        path.write_text("ba de {x}\n")
    assert heed("translate", folder, "--file", files[0], "--file", files[1], "--out", tmp_path / "o", "--json") == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(record["out"], record["passages"]) for record in records] == [
        (str(tmp_path / "o" / name), 1) for name in ("a.txt", "b.md")
    ]
    assert (tmp_path / "o" / "a.txt").read_text() == (tmp_path / "o" / "b.md").read_text()
    assert (tmp_path / "o" / "a.txt").read_text().count("{x}") == 1


def test_a_document_and_where_it_goes_belong_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = translator(tmp_path / "run", "low", "high", seed=2)
    for words, said in (
        (("ba de", "--out", tmp_path / "x"), "error: --out: where a document goes, and none is given"),
        (("--file", tmp_path / "x"), "error: --file: a document, and not where its translation goes"),
    ):
        assert heed("translate", folder, *words) == 2
        assert capsys.readouterr().err.splitlines()[0] == said


@pytest.mark.parametrize("name", ["half a character", "xlf: a bomb", "po: cut in a string", "docx: leads out"])
def test_the_command_refuses_what_is_broken(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    folder = translator(tmp_path / "run", "low", "high", seed=2)
    file, data = BROKEN[name]
    (tmp_path / "whole.txt").write_text("ba de\n")
    (tmp_path / file).write_bytes(data)
    before = sorted(tmp_path.rglob("*"))
    words = ("--file", tmp_path / "whole.txt", "--file", tmp_path / file)
    assert heed("translate", folder, *words, "--out", tmp_path / "o") == 2
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith(f"error: {tmp_path / file}")
    assert told[1].startswith("fix: ")
    assert len(told) == 2
    assert sorted(tmp_path.rglob("*")) == before, "all are read before the first is written"


def test_what_cannot_be_written_is_refused_before_a_word_is_translated(own: Translator, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("ba")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.txt").write_text("de")

    def refused(names: list[Path], out: Path) -> str:
        with pytest.raises((InputError, MissingError)) as raised:
            list(translate_documents(own, names, out, DecodingOptions()))
        return str(raised.value)

    assert "would be written over" in refused([path], path)
    assert "not the ending of" in refused([path], tmp_path / "a.md")
    assert "two documents of one name" in refused([path, tmp_path / "sub" / "a.txt"], tmp_path / "out")
    assert "expected a folder" in refused([path, tmp_path / "b.txt"], path)
    assert "no such folder" in refused([path], tmp_path / "none" / "a.txt")
    assert "no such file" in refused([path, tmp_path / "b.txt"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_another_library_tells_no_alignment(own: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    says_what_it_is_told(lambda text: [text.upper()], monkeypatch)
    own = own.changed(engine=SimpleNamespace(own=None))  # type: ignore[typeddict-item]
    assert [plain(best.placed) for (best,) in translate_passages(own, page("ba"), DecodingOptions())] == ["BA"]
    with pytest.raises(InputError, match="does not tell what was looked at"):
        list(translate_passages(own, page("ba <b>de</b> gi"), DecodingOptions()))


def test_a_document_without_text_is_written_as_it_is(own: Translator, tmp_path: Path) -> None:
    path, out = tmp_path / "a.txt", tmp_path / "b.txt"
    path.write_bytes(b"\n---\n1 2\n")
    (written,) = translate_documents(own, [path], out, DecodingOptions())
    assert written.passages == 1
    assert out.read_bytes() == path.read_bytes()
    assert read_document(path).passages[0].text == "1 2"
