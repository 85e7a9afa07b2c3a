"""XLIFF, PO, subtitles and Word's documents: what is translated already stays, and so does all that is no text."""

import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from documents import BODY, BROKEN, DOCUMENTS, PO, SRT, VTT, XLIFF, XLIFF2, run, shouted, word
from heedful.data.documents.passages import Document
from heedful.data.documents.read import read_document
from heedful.data.text.formats.po import read_po
from heedful.data.text.formats.xliff import read_xliff
from heedful.errors import InputError

Read = Callable[[str, bytes | str], Document]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_has_been_translated_is_read_as_before(read: Read, name: str) -> None:
    document = read(name, DOCUMENTS[name])
    assert document.passages
    made = shouted(document)
    again = read(name, made)
    if name.endswith((".xlf", ".xliff", ".po")):
        assert len(again.passages) == (name == "a.po"), "but for what is fuzzy, all has a translation"
        assert shouted(again) == made
    else:
        assert [each.text for each in again.passages] == [each.text.upper() for each in document.passages]
        assert shouted(again) == made or name == "a.docx"


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if not name.endswith((".xlf", ".xliff", ".po"))])
def test_the_same_words_change_no_byte(read: Read, name: str) -> None:
    document = read(name, DOCUMENTS[name])
    assert document.written(each.placed for each in document.passages) == DOCUMENTS[name]
    assert document.written(None for _ in document.passages) == DOCUMENTS[name]


def test_xliff_1_has_targets_as_the_standard_wants(read: Read, tmp_path: Path) -> None:
    made = shouted(read("a.xlf", XLIFF)).decode()
    state = 'state="translated" state-qualifier="mt-suggestion"'
    first = f'<target {state}>BA <g id="1">DE GI</g> <bpt id="2">&lt;b></bpt>KO<ept id="2">&lt;/b></ept>'
    assert first in made
    assert f"</source>\n        {first}. LU!<x id=" in made
    assert f"<source>ma &amp; ne</source><target {state}>MA &amp; NE</target>" in made
    assert f"<source>ro<![CDATA[ <su>]]></source><target {state}>RO &lt;SU&gt;</target><alt-trans>" in made
    bare = re.sub(r' target-language="de"|\s*<target state="translated".*?</target>', "", made)
    assert bare == XLIFF.replace('<target state="needs-translation"/>', ""), "nothing else is changed"
    (tmp_path / "b.xlf").write_text(made.replace(' state-qualifier="mt-suggestion"', ""))  # as if somebody confirmed it
    rows, _ = read_xliff(tmp_path / "b.xlf", "low", "de")
    assert next(rows)[1] == ("ba de gi ko. Lu!", "BA DE GI KO. LU!")


def test_what_is_to_be_reviewed_is_marked(read: Read) -> None:
    for name, text, mark in (
        ("a.xlf", XLIFF, 'state="needs-review-translation"'),
        ("b.xliff", XLIFF2, 'state="translated" subState="heedful:needs-review"'),
        ("a.po", PO, "#, fuzzy"),
    ):
        document = read(name, text)
        said = [[each.text.upper()] for each in document.passages]
        plain, last = document.written(said).decode(), document.written(said, [False] * (len(said) - 1) + [True])
        assert last.decode().count(mark) == plain.count(mark) + 1
        every = document.written(said, [True] * len(said)).decode()
        assert every.count(mark) > last.decode().count(mark)
        assert len(read(name, every).passages) >= len(read(name, plain).passages)


def test_xliff_2_has_targets_as_the_standard_wants(read: Read) -> None:
    made = shouted(read("b.xliff", XLIFF2)).decode()
    assert 'srcLang="en" trgLang="de">' in made
    assert '<target>BA <pc id="1">DE</pc> GI<ph id="2"/>.</target></segment>' in made
    assert '<segment id="s2" state="translated"><source>Ko <sc id="3"/>lu<ec startRef="3"/>.</source>' in made
    assert '<target>KO <sc id="3"/>LU<ec startRef="3"/>.</target>' in made
    assert made.count("<target>") == 3
    assert "<segment><source>ba</source></segment></unit></file>" in made


@pytest.mark.parametrize(("said", "code"), [("de", "de"), ("German", "de"), ("DE", "de"), ("pt-BR", "pt-BR")])
def test_xliff_is_told_the_code_of_its_language(tmp_path: Path, said: str, code: str) -> None:
    for name, text, attribute in (("a.xlf", XLIFF, "target-language"), ("b.xliff", XLIFF2, "trgLang")):
        (tmp_path / name).write_text(text)
        assert f' {attribute}="{code}">' in shouted(read_document(tmp_path / name, said)).decode()


def test_xliff_2_without_a_language_is_told(tmp_path: Path) -> None:
    (tmp_path / "b.xliff").write_text(XLIFF2)
    document = read_document(tmp_path / "b.xliff", "target")
    assert "trgLang" not in shouted(document).decode()
    assert [note for note in document.notes if "set trgLang, which XLIFF 2 requires" in note]


def test_xliff_keeps_segments_lines_and_what_is_protected(read: Read) -> None:
    state = 'state="translated" state-qualifier="mt-suggestion"'
    head, tail = XLIFF[: XLIFF.index("<trans-unit")], "</trans-unit></body></file></xliff>"
    head = head.replace("<xliff ", '<xliff xmlns:its="http://www.w3.org/2005/11/its" ')

    def target(source: str, space: str = "") -> str:
        made = shouted(read("a.xlf", f'{head}<trans-unit id="1"{space}>{source}{tail}')).decode()
        return made[made.index(f"<target {state}>") : made.index("</target>")].partition(">")[2]

    for said in ('mtype="protected"', 'mtype="x-its-translate-no"', 'mtype="x-its" its:translate="no"'):
        protected = f"<mrk {said}>de</mrk>"
        assert target(f"<source>ba {protected} gi</source>") == f"BA {protected} GI"
    for said in ('its:translate="yes"', 'mtype="x-its-translate-yes"'):
        within = f'<mrk mtype="protected">de <mrk {said}>gi <mrk mtype="protected">ko</mrk></mrk> lu</mrk>'
        assert target(f"<source>ba {within} ma</source>") == f"BA {within.replace('gi', 'GI')} MA"
    two = '<mrk mtype="seg" mid="1">ba <mrk mtype="x-t">de</mrk>,</mrk> <mrk mtype="seg" mid="2">gi.</mrk>'
    segmented = f"<source>ba de, gi.</source><seg-source>{two}</seg-source>"
    assert len(read("a.xlf", f'{head}<trans-unit id="1">{segmented}{tail}').passages) == 2
    assert target(segmented) == two.replace("ba", "BA").replace(">de", ">DE").replace("gi", "GI")
    lines = '<source>ba  de\n\n\tgi <g id="1">ko&#10;lu</g> ma</source>'
    assert target(lines) == 'BA DE GI <g id="1">KO LU</g> MA'
    assert target(lines, ' xml:space="preserve"') == 'BA  DE\n\n\tGI <g id="1">KO&#10;LU</g> MA'
    made = shouted(read("b.xliff", XLIFF2.replace('"s1"><source', '"s1"><source xml:space="preserve"'))).decode()
    assert '<target xml:space="preserve">BA ' in made
    marked = XLIFF2.replace("ba <pc", '<mrk id="m" translate="no">ba</mrk> <pc')
    assert '<target><mrk id="m" translate="no">ba</mrk> <pc id="1">DE' in shouted(read("b.xliff", marked)).decode()


def test_what_is_a_blank_to_markup_alone_is_kept_once(read: Read) -> None:
    head = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    made = shouted(read("a.po", f'{head}msgid "\\tba de\\r\\n"\nmsgstr ""\n')).decode()
    assert made.endswith('\nmsgstr "\\tBA DE\\r\\n"\n')
    assert shouted(read("a.srt", SRT.replace("ba <i>", "\u3000ba <i>"))).decode().count("\u3000") == 1


def test_po_is_filled_where_it_is_empty_or_fuzzy(read: Read, tmp_path: Path) -> None:
    document = read("a.po", PO)
    assert document.notes == (
        "1 fuzzy entry translated anew, and still marked as fuzzy",
        "1 entry translated already, left as before",
    )
    made = document.written([[each.text.replace("ba", 'B\u00c4 "')] for each in document.passages]).decode()
    for text in (
        'msgstr "BÄ \\" %d \\"de\\"\\n"',
        'msgstr[0] "ko"\nmsgstr[1] "%d ko"',
        'msgstr ""\n"lu ma ne.\\n"\n"Pi ro"',
    ):
        assert text in made
    assert '#, fuzzy\n#| msgid "ba"\nmsgid "ba de"\nmsgstr "BÄ \\" de"' in made
    assert made.endswith('#~ msgid "su"\n#~ msgstr ""\n')
    assert made.startswith(PO[: PO.index("#: a.c")])
    (tmp_path / "b.po").write_text(made)
    assert len([*read_po(tmp_path / "b.po", "source", "target")[0]]) == 5


def test_forms_of_a_plural_that_are_empty_are_filled(read: Read) -> None:
    forms = 'msgid "ba"\nmsgid_plural "de"\nmsgstr[0] "{}"\nmsgstr[1] ""\nmsgstr[2] "{}"\n'
    document = read("a.po", forms.format("KO", "LU"))
    assert shouted(document).decode() == forms.format("KO", "LU").replace('[1] ""', '[1] "DE"')
    assert document.notes == ()
    fuzzy = read("a.po", f"#, fuzzy\n{forms.format('KO', '')}")
    assert [each.text for each in fuzzy.passages] == ["ba", "de", "de"]


def test_po_is_parted_where_gettext_parts_it(read: Read) -> None:
    document = read("a.po", f'{PO}\nmsgid "ba\u2028de \x0c\x85gi"\nmsgstr ""\n')
    assert document.passages[-1].text == "ba\u2028de \x0c\x85gi"
    assert shouted(document).decode().endswith('msgstr "BA\u2028DE \\f\x85GI"\n')
    after = PO.replace('#~ msgid "su"', '#, fuzzy\n#~ msgid "su"') + '\nmsgid "ma"\nmsgstr "MA"\n'
    assert "2 entries translated already, left as before" in read("a.po", after).notes


def test_subtitles_keep_their_times(read: Read) -> None:
    made = shouted(read("a.srt", SRT)).decode()
    assert made == SRT.replace("ba <i>de gi</i>\r\nko lu.", "BA <i>DE GI</i>\r\nKO LU.").replace("Ma.", "MA.").replace(
        "Ne!", "NE!"
    )
    assert shouted(read("a.vtt", VTT)).decode() == VTT.replace(
        "<v Bob>ba &amp; de <c.red>gi</c>", "<v Bob>BA &amp; DE <c.red>GI</c>"
    )


@pytest.mark.parametrize(
    ("said", "lines"),
    [
        ("これは「字幕」です。明日、東京へ行きます。", ["これは「字幕」です。明", "日、東京へ行きます。"]),
        ("中文字幕没有空格。", ["中文字幕没", "有空格。"]),
        ("BA DE GI KO", ["BA DE", "GI KO"]),
        ("BA", ["BA"]),
    ],
)
def test_subtitles_have_as_many_lines_as_before(read: Read, said: str, lines: list[str]) -> None:
    """In scripts without spaces too, and none begins with a sign that ends what was before."""
    document = read("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nba de\ngi ko\n")
    made = document.written([[said]]).decode()
    assert made.split("\n")[2:-1] == lines


def test_word_keeps_formats_fields_and_all_other_parts(read: Read) -> None:
    document = read("a.docx", word())
    assert [each.text for each in document.passages] == ["ba de", "gi ko lu & ma ", "ne pi ro. Su 12 ba"]
    made = shouted(document)
    old, new = (zipfile.ZipFile(io.BytesIO(data)) for data in (word(), made))
    assert old.namelist() == new.namelist()
    assert all(old.read(name) == new.read(name) for name in old.namelist() if name != "word/document.xml")
    body = new.read("word/document.xml").decode()
    root = ElementTree.fromstring(body)
    names = [element.tag.rpartition("}")[2] for element in root.iter()]
    before = [element.tag.rpartition("}")[2] for element in ElementTree.fromstring(BODY).iter()]
    for name in ("p", "tab", "hyperlink", "bookmarkStart", "bookmarkEnd", "fldChar", "instrText", "b", "i", "sectPr"):
        assert names.count(name) == before.count(name), name
    assert '<w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">KO</w:t></w:r>' in body
    assert body.index("begin") < body.index("PAGE") < body.index("separate") < body.index(">12<") < body.index('"end"')
    assert body.index("<w:hyperlink") < body.index("PI RO") < body.index("</w:hyperlink>")


def paragraph(inside: str) -> str:
    return re.sub("<w:body>.*</w:body>", lambda _: f"<w:body><w:p>{inside}</w:p></w:body>", BODY, flags=re.DOTALL)


def test_word_s_controls_are_translated_where_they_hold_text(read: Read) -> None:
    control = "<w:sdt><w:sdtPr>%s</w:sdtPr><w:sdtContent>%s</w:sdtContent></w:sdt>"
    of_text, box = control % ("<w:text/>", run("de gi")), control % ('<w14:checkbox xmlns:w14="x"/>', run("\u2610"))
    tag = f'<w:smartTag w:element="x"><w:smartTagPr><w:attr/></w:smartTagPr>{run("ko")}</w:smartTag>'
    document = read("a.docx", word(paragraph(f"{run('ba ')}{of_text}{run(' lu ')}{box}{run(' ma ')}{tag}{run('.')}")))
    assert [each.text for each in document.passages] == ["ba de gi lu  ma ko."]
    body = zipfile.ZipFile(io.BytesIO(shouted(document))).read("word/document.xml").decode()
    for kept in (of_text.replace("de gi", "DE GI"), box, tag.replace("ko", "KO")):
        assert kept in body


@settings(max_examples=40)
@given(
    st.lists(
        st.sampled_from(
            ["<w:r><w:t>ba</w:t></w:r>", "<w:r><w:rPr><w:b/></w:rPr><w:t>de gi</w:t></w:r>", "<w:r><w:br/></w:r>"]
            + ["<w:hyperlink>", "</w:hyperlink>", "<w:r><w:tab/><w:t>ko</w:t></w:r>", "<w:ins>", "</w:ins>"]
            + [f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end")]
        ),
        max_size=14,
    )
)
def test_any_paragraph_stays_well_formed(pieces: list[str]) -> None:
    from heedful.data.documents.office import docx_document

    opened: list[str] = []
    made = ""
    for piece in pieces:
        if piece.startswith("</"):
            if opened and opened[-1] == piece[2:-1]:
                made += piece
                opened.pop()
        else:
            made += piece
            opened += [piece[1:-1]] if piece in ("<w:hyperlink>", "<w:ins>") else []
    made += "".join(f"</{name}>" for name in reversed(opened))
    body = paragraph(made)
    document = docx_document(word(body), "a.docx")
    new = zipfile.ZipFile(io.BytesIO(shouted(document))).read("word/document.xml").decode()
    ElementTree.fromstring(new)
    for part in ("<w:br/>", "<w:tab/>", "<w:hyperlink>", "<w:ins>", "fldChar "):
        assert new.count(part) == body.count(part), part


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_refused_in_one_line(read: Read, name: str) -> None:
    refused_in_one_line(read, *BROKEN[name])


def refused_in_one_line(read: Read, file: str, data: bytes) -> None:
    with pytest.raises(InputError) as raised:
        read(file, data)
    assert file in str(raised.value)
    assert "\n" not in f"{raised.value} {raised.value.fix}"
    assert raised.value.fix


def test_what_unpacks_into_much_is_refused_in_one_line(read: Read) -> None:
    """Packed here alone: it takes a second."""
    refused_in_one_line(read, "a.docx", word(**{"word/media/x": bytes(300_000_000)}))


def test_there_are_forty_of_them() -> None:
    assert len(BROKEN) >= 40
