"""Documents as the programs write them that people have."""

import io
import re
import zipfile
from collections.abc import Callable, Sequence

import pytest

from documents import BODY, XLIFF, W, relationships_of, run, shouted_text, word, zipped
from heedful.data.documents.passages import Document
from heedful.errors import InputError

Read = Callable[[str, str | bytes], Document]


def texts(document: Document) -> list[str]:
    return [passage.text for passage in document.passages]


def said(document: Document, others: Sequence[str]) -> str:
    """The file with these in place of its passages, the marks of each at its end."""
    each = zip(others, document.passages, strict=True)
    return document.written([other, *passage.marks] for other, passage in each).decode()


def body_of(data: bytes) -> str:
    return zipfile.ZipFile(io.BytesIO(data)).read("word/document.xml").decode()


def test_a_line_of_a_table_of_contents_is_parted_at_its_tab(read: Read) -> None:
    """The number of the page stays in its field, and the words out of it, whatever a translation says."""
    begin, separate, end = (f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end"))
    code = "<w:r><w:instrText> {} </w:instrText></w:r>"
    page = f"{begin}{code.format('PAGEREF a')}{separate}{run('12')}{end}"
    line = f'<w:hyperlink w:anchor="a">{run("Ba de")}<w:r><w:tab/></w:r>{page}</w:hyperlink>'
    inside = f"<w:p>{begin}{code.format('TOC')}{separate}{line}</w:p><w:p>{line}</w:p><w:p>{end}</w:p>"
    inside += f"<w:p>{run('ko ')}<w:hyperlink>{run('lu')}<w:r><w:br/></w:r>{run('ma')}</w:hyperlink>{run(' ne')}</w:p>"
    own = re.sub("<w:body>.*</w:body>", lambda _: f"<w:body>{inside}</w:body>", BODY, flags=re.DOTALL)
    document = read("a.docx", word(own))
    assert texts(document) == ["Ba de", "12", "Ba de", "12", "ko ", "lu", "ma", " ne"]
    assert not any(passage.marks for passage in document.passages)
    made = body_of(document.written([passage.text.upper()] for passage in document.passages))
    assert re.sub(' xml:space="preserve"', "", made) == re.sub(
        ">(Ba de|ko |lu|ma| ne)<", lambda found: found[0].upper(), re.sub(' xml:space="preserve"', "", own)
    )


def test_the_parts_of_word_are_those_that_its_relationships_name(read: Read) -> None:
    """As some programs name them; what a glossary of blocks has is none of the text."""
    others = {"word/header7.xml": header("ba"), "word/glossary/document.xml": header("de")}
    made = word(main="word/document2.xml", **others)
    document = read("a.docx", made)
    assert texts(document) == ["ba de", "gi ko lu & ma ", "ne pi ro. Su 12 ba", "ba"]
    shouted = zipfile.ZipFile(io.BytesIO(document.written([each.text.upper()] for each in document.passages)))
    assert "BA DE" in shouted.read("word/document2.xml").decode()
    absolute = relationships_of([("officeDocument", "/word/document2.xml")])
    assert texts(read("a.docx", with_member(made, "_rels/.rels", absolute))) == texts(document)
    nowhere = relationships_of([("officeDocument", "word/document.xml")])
    with pytest.raises(InputError, match=r"no Word document: its main part, 'word/document\.xml', is not in it"):
        read("a.docx", with_member(made, "_rels/.rels", nowhere))


def test_word_s_xml_with_other_prefixes_is_refused(read: Read) -> None:
    """As some scripts write it: nothing in it would be found."""
    other = BODY.replace("w:", "ns0:").replace("xmlns:w=", "xmlns:ns0=")
    with pytest.raises(InputError, match=r"a\.docx/word/document\.xml: its tags begin with 'ns0:', expected 'w:'"):
        read("a.docx", word(other))


def header(text: str) -> str:
    return f"<w:hdr {W}><w:p>{run(text)}</w:p></w:hdr>"


def with_member(data: bytes, name: str, content: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return zipped({each: archive.read(each) for each in archive.namelist()} | {name: content.encode()})


def test_the_language_that_word_has_found_for_some_letters_is_no_format(read: Read) -> None:
    formats = ['<w:b/><w:lang w:val="en-US"/>', "<w:b/>", "<w:noProof/><w:b/>", "<w:noProof/>", ""]
    runs = "".join(
        f"<w:r><w:rPr>{own}</w:rPr><w:t>{text}</w:t></w:r>"
        for own, text in zip(formats, ("ba", "d", "e gi", "k", "o"), strict=True)
    )
    own = re.sub("<w:body>.*</w:body>", lambda _: f"<w:body><w:p>{runs}</w:p></w:body>", BODY, flags=re.DOTALL)
    document = read("a.docx", word(own))
    (passage,) = document.passages
    assert [(mark.at, mark.role) for mark in passage.marks] == [(7, "opens"), (9, "closes")]
    assert '<w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">BADE' in body_of(document.written([["BADE"]]))


HEAD = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset={}\\n"\n\n'


def test_a_backslash_before_an_n_is_no_line_end_of_a_catalogue(read: Read) -> None:
    document = read("a.po", HEAD.format("UTF-8") + 'msgid "ba \\\\\\nlu C:\\\\de\\\\n"\nmsgstr ""\n')
    assert texts(document) == ["ba \\", "lu C:\\de\\n"]
    assert shouted_text(document).endswith('\nmsgstr ""\n"BA \\\\\\n"\n"LU C:\\\\DE\\\\N"\n')


def test_a_catalogue_as_xgettext_leaves_it_says_what_is_to_be_written_there(read: Read) -> None:
    with pytest.raises(InputError, match="'CHARSET', is not known") as raised:
        read("a.po", HEAD.format("CHARSET") + 'msgid "ba"\nmsgstr ""\n')
    assert "write UTF-8 in its place" in str(raised.value.fix)


def test_who_speaks_in_a_subtitle_says_all_lines_up_to_the_next(read: Read) -> None:
    """The signs before what somebody says are none of it, and another's words stay on another's lines."""
    times = "\n00:00:0{0},000 --> 00:00:0{0},900\n"
    cues = "1{}- Ba de.\n\u2013Ko lu,\nma.\n\n2{}{{\\an8}}<i>- Pi\nro.</i>\n\n3{}\u266a Su ne \u266a\n"
    text = cues.format(*(times.format(number) for number in (1, 2, 3)))
    document = read("a.srt", text)
    assert texts(document) == ["Ba de.", "Ko lu, ma.", "Pi ro.", "Su ne"]
    assert said(document, ["De.", "Lu ko ma.", "Ro pi.", "Ne su"]) == text.replace("Ba de", "De").replace(
        "Ko lu,\nma.", "Lu ko\nma."
    ).replace("Pi\nro.", "Ro\npi.").replace("Su ne", "Ne su")
    voices = "WEBVTT\n\n00:01.000 --> 00:02.000\n<v A>Ba &gt;\n<v B>De gi ko.\n\n00:03.000 --> 00:04.000\n&gt;&gt; LU\n"
    document = read("a.vtt", voices)
    assert texts(document) == ["Ba >", "De gi ko.", "LU"]
    assert said(document, ["Ba ba ba ba", "De", "ne"]) == voices.replace("Ba &gt;", "Ba ba ba ba").replace(
        "De gi ko.", "De"
    ).replace("LU", "ne")


@pytest.mark.parametrize("first", ["My sister buys three apples.", "My sister buys", "- My sister buys"])
@pytest.mark.parametrize("second", ["- The dog sees.", "<i>-The dog sees.</i>", "\u2013 The dog\nsees."])
def test_a_dash_of_the_second_speaker_alone_parts_them_and_stays(read: Read, first: str, second: str) -> None:
    text = f"1\n00:00:01,000 --> 00:00:02,000\n{first}\n{second}\n"
    document = read("a.srt", text)
    assert texts(document) == [first.removeprefix("- "), "The dog sees."]
    cue = f"{first}\n{second}\n".upper().replace("<I>", "<i>").replace("</I>", "</i>")
    assert shouted_text(document).endswith(f"00\n{cue}")


def test_readings_of_ruby_in_a_subtitle_are_kept(read: Read) -> None:
    cue = "WEBVTT\n\n00:01.000 --> 00:02.000\n<ruby>ba<rt>x</rt>ko<rt>y</ruby> de\n"
    document = read("a.vtt", cue)
    assert texts(document) == ["bako de"]
    assert shouted_text(document) == cue.replace("ba", "BA").replace("ko", "KO").replace(" de", " DE")


def test_what_was_deleted_in_a_document_is_told(read: Read) -> None:
    gone = '<w:del w:id="1" w:author="a"><w:r><w:delText>lu</w:delText></w:r></w:del>'
    end = '<w:pPr><w:rPr><w:del w:id="2" w:author="a"/></w:rPr></w:pPr>'
    inside = f"<w:p>{end}{run('ba ')}{gone}{run('de')}</w:p>"
    body = re.sub("<w:body>.*</w:body>", lambda _: f"<w:body>{inside}</w:body>", BODY, flags=re.DOTALL)
    document = read("a.docx", word(body))
    assert texts(document) == ["ba de"]
    what = "1 tracked deletion is left as it was written: accept or reject the changes first"
    assert document.notes == (what,)
    assert read("a.docx", word()).notes == ()


def test_a_line_of_a_blank_ends_no_cue_of_webvtt(read: Read) -> None:
    """As YouTube begins and ends them: only a line without anything does."""
    times = "00:00:00.160 --> 00:00:02.389 align:start position:0%\n"
    text = f"WEBVTT\n\n{times} \nba<00:00:00.320><c> de</c>\n\n{times}gi ko\n \n\n{times}\nlu\n"
    document = read("a.vtt", text)
    assert texts(document) == ["ba de", "gi ko"]
    made = text.replace("ba<", "BA<").replace(" de<", " DE<").replace("gi ko", "GI KO")
    assert shouted_text(document) == made
    assert said(document, ["one two", "three"]).split("\n")[4].startswith("one two<")


def test_lines_of_a_song_and_of_named_speakers_are_passages(read: Read) -> None:
    cue = "1\n00:00:01,000 --> 00:00:02,000\n{}\n"
    for text, expected in (
        ("\u266a ba de \u266a\n\u266a gi \u266a", ["ba de", "gi"]),
        ("\u266a ba de\ngi \u266a", ["ba de gi"]),
        ("BA: de\nGI KO: lu ma\nne", ["BA: de", "GI KO: lu ma ne"]),
        ("BA: de\ngi ko", ["BA: de gi ko"]),
        ("ba de\n-5 gi", ["ba de -5 gi"]),
    ):
        document = read("a.srt", cue.format(text))
        assert texts(document) == expected
        made = shouted_text(document).split("\n")[2:-1]
        assert " ".join(made) == " ".join(text.upper().split("\n"))
        assert len(made) == len(text.split("\n"))


def test_a_subtitle_goes_on_up_to_the_next_times(read: Read) -> None:
    """SubRip's may begin with a blank line, have one inside, or none behind it."""
    first, second = (f"00:00:0{n},000 --> 00:00:0{n},900\r\n" for n in (1, 2))
    text = f"1\r\n{first}\r\nBa de\r\n\r\nko 12\r\n7\r\n2\r\n{second}lu\r\n\r\n\r\n"
    document = read("a.srt", text)
    assert texts(document) == ["Ba de", "ko 12 7", "lu"]
    assert [passage.line for passage in document.passages] == [4, 6, 10]
    assert said(document, ["De ba", "12 7 ko", "ul"]) == text.replace("Ba de", "De ba").replace(
        "ko 12\r\n7", "12 7\r\nko"
    ).replace("lu", "ul")
    notes = "WEBVTT\n\nid\n00:01.000 --> 00:02.000\nba\n\nNOTE\nde\n\n00:03.000 --> 00:04.000\nko\n"
    assert texts(read("a.vtt", notes)) == ["ba", "ko"]


def test_the_items_of_a_list_are_passages_without_their_signs(read: Read) -> None:
    """They are no paragraph that was broken at the width of a page, though their lines are about as long."""
    long = "Ba de gi ko lu ma ne pi ro su ba de gi ko lu ma"
    text = f"- {long}\n- {long} ne\n  pi {long}\n- {long}\n\n1. Ba\n(2) De\na) gi\n\u2022 ko\n\u2013 lu\n\u2013 ma\n"
    document = read("a.txt", text)
    assert texts(document) == [long, f"{long} ne pi {long}", long, "Ba", "De", "gi", "ko", "lu", "ma"]
    assert [passage.line for passage in document.passages] == [1, 2, 4, 6, 7, 8, 9, 10, 11]
    assert shouted_text(document) == text.upper().replace("A) GI", "a) GI")
    letter = f"3. Ba de\n{long}\n\u2013 {long} \u2013 gi\nko"
    assert texts(read("a.txt", letter)) == letter.split("\n")
    broken = f"{long} lu\n\u2013 {long} \u2013 gi\nko"
    assert texts(read("a.txt", broken)) == [broken.replace("\n", " ")]


def test_what_begins_a_note_in_markdown_stays_on_its_line(read: Read) -> None:
    text = "> [!NOTE]\n> ba de gi\n> ko lu\n\n:::tip\nma ne\n:::\n\n!!! note\n    pi\n\n> [!tip]+ ro su\n"
    document = read("a.md", text)
    assert texts(document) == ["ba de gi ko lu", "ma ne", "pi", "ro su"]
    assert said(document, ["gi", "ne ma ma", "ip", "us or"]) == text.replace("ba de gi\n> ko lu", "gi").replace(
        "ma ne", "ne ma\nma"
    ).replace("pi\n", "ip\n").replace("ro su", "us or")


@pytest.mark.parametrize(
    "code", ['<x id="1" ctype="lb"/>', '<ph id="1">&lt;br/&gt;</ph>', '<ph id="1" ctype="lb">x</ph>']
)
def test_a_code_that_breaks_a_line_parts_passages(read: Read, code: str) -> None:
    text = XLIFF.replace("ma &amp; ne", f"ma{code}ne <x id='2'/>pi")
    document = read("a.xlf", text)
    assert texts(document)[1:3] == ["ma", "ne pi"]
    assert f">MA{code}NE <x id='2'/>PI</target>" in shouted_text(document)


def test_tags_that_angular_has_as_codes_are_pairs(read: Read) -> None:
    names = ("START_LINK_1", "START_TAG_B", "CLOSE_TAG_B", "INTERPOLATION", "CLOSE_LINK", "CLOSE_TAG_B")
    codes = [f'<x id="{name}" ctype="x-y" equiv-text="z"/>' for name in names]
    document = read("a.xlf", XLIFF.replace("ma &amp; ne", "ma {}de {}gi{} ko{}{} lu{} ne".format(*codes)))
    marks = document.passages[1].marks
    assert [mark.raw for mark in marks] == codes
    assert [mark.role for mark in marks] == ["opens", "opens", "closes", "alone", "closes", "alone"]
    assert [mark.pair for mark in marks] == [0, 1, 1, -1, 0, -1]


def test_a_message_that_chooses_its_words_is_translated_case_by_case(read: Read) -> None:
    code = '<x id="INTERPOLATION"/>'
    message = (
        "Ba {n, plural, =0 {no {de}}\n one {# gi}"
        + f" other {{{code} ko {{g, select, a {{lu &amp; #}} other {{}}}}}}}} ma"
    )
    found = ["Ba", "no {de}", "gi", "ko", "lu & #", "ma"]
    for space in ("", ' xml:space="preserve"'):
        document = read("a.xlf", XLIFF.replace("<source>ma &amp; ne", f"<source{space}>{message}"))
        assert [text.strip() for text in texts(document)[1:7]] == found
        made = re.sub(r"(Ba|no|de|gi|ko|lu|ma)\b", lambda own: own[0].upper(), message)
        assert f">{made}</target>" in shouted_text(document)
    catalogue = 'msgid "{n, plural, one {# \\"ba\\"}\\n other {# de}}"\nmsgstr ""\n'
    document = read("a.po", catalogue)
    assert texts(document) == ['"ba"', "de"]
    assert 'msgstr "{n, plural, one {# \\"BA\\"}\\n other {# DE}}"' in shouted_text(document)
    broken = "{n, plural, one {ba} other {de} gi"
    assert texts(read("a.xlf", XLIFF.replace("ma &amp; ne", broken)))[1] == broken


def test_formulas_of_markdown_are_kept(read: Read) -> None:
    text = """ba $x_1^2 + y_{*}$ de **$a*b$** $5 or $10-$20 in $HOME/$x, `$c` $d

$$
E = mc^2 * f_a
$$

| gi $|x|$ | ko |
|---|---|
| lu | $y$ |

ma $$F = ma$$
ne $pi
"""
    document = read("a.md", text)
    found = ["ba  de  $5 or $10-$20 in $HOME/$x,  $d", "gi", "ko", "lu", "ma  ne $pi"]
    assert texts(document) == found
    made = shouted_text(document)
    kept = ("$x_1^2 + y_{*}$", "**$a*b$**", "`$c`", "$$\nE = mc^2 * f_a\n$$", "$|x|$", "$y$", "$$F = ma$$")
    assert all(made.count(part) == 1 for part in kept)
    assert made.lower() == text.lower()
    assert "$5 OR $10-$20 IN $HOME/$X" in made


def test_a_page_is_in_what_browsers_take_its_encoding_for(read: Read) -> None:
    page = "<meta charset=iso-8859-1><p>{}</p>"
    document = read("a.html", page.format("\u201cB\u00e9\u201d \u2013 de").encode("cp1252"))
    assert texts(document) == ["\u201cB\u00e9\u201d \u2013 de"]
    made = document.written([["\u201ede\u201c \u2014 \u0142"]])
    assert made == page.format("\u201ede\u201c \u2014 &#322;").encode("cp1252")


def test_a_unit_that_is_translated_in_part_gets_the_segments_that_it_lacks(read: Read) -> None:
    """As Okapi marks them; what is there, or is not to be translated, stays."""
    one, two, three = (f'<mrk mtype="seg" mid="{mid}">' for mid in (1, 2, 3))
    own = f"<source>x</source><seg-source>{one}Ba.</mrk> {two}De <x id='1'/>gi.</mrk> {three}Ko.</mrk></seg-source>"
    target = f"<target>{one}AB</mrk> {two}</mrk> {three[:-1]}/></target>"
    fixed = f'<target>{one[:-1]} translate="no">AB</mrk> {two}<x id="9"/></mrk> {three}Ok</mrk></target>'
    for state, found in (("", ["De gi.", "Ko."]), (' approved="yes"', [])):
        text = XLIFF.replace("<source>ba</source><target", f"{own}{target}</trans-unit><trans-unit id='x'>{own}{fixed}")
        text = text.replace(' state="final">NE</target>', "").replace(
            '<trans-unit id="2"', f'<trans-unit id="2"{state}'
        )
        document = read("a.xlf", text)
        assert [passage for passage in texts(document) if passage in ("De gi.", "Ko.", "Ba.")] == found
        made = shouted_text(document)
        assert fixed in made
        if found:
            assert f"<target>{one}AB</mrk> {two}DE <x id='1'/>GI.</mrk> {three}KO.</mrk></target>" in made
        every = document.written([[each.text] for each in document.passages], [True] * len(document.passages)).decode()
        assert every.count('state="needs-review-translation"') == made.count('state="translated"')


@pytest.mark.parametrize("name", ["a.sdlxliff", "a.mqxliff", "a.mxliff"])
def test_what_a_program_has_beside_its_units_stays(name: str, read: Read) -> None:
    """Units of memoQ have an empty target, of Trados a segment without words; what either knows of them is its own."""
    units = """<trans-unit id="1" sdl:a="NotStarted"><source>ba <bpt id="1">&lt;b&gt;</bpt>de<ept id="1"/></source>{}
    </trans-unit><trans-unit id="2"><source>gi. ko.</source><seg-source><mrk mtype="seg" mid="1">gi.</mrk>
    <mrk mtype="seg" mid="2">ko.</mrk></seg-source><target><mrk mtype="seg" mid="1"{}
    <mrk mtype="seg" mid="2">lu.</mrk></target><sdl:seg-defs><sdl:seg id="1"/></sdl:seg-defs></trans-unit>"""
    head = '<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" xmlns:sdl="sdl:1.0" version="1.2"><sdl:doc/>'
    text = f'{head}<file source-language="en" target-language="de"><body>{units}</body></file></xliff>'
    document = read(name, text.format('<target xml:space="preserve"></target>', "/>"))
    state = ' state="translated" state-qualifier="mt-suggestion"'
    made = f'<target xml:space="preserve"{state}>BA <bpt id="1">&lt;b&gt;</bpt>DE<ept id="1"/></target>'
    assert shouted_text(document) == text.format(made, ">GI.</mrk>")


@pytest.mark.parametrize("space", ["", ' xml:space="preserve"'])
def test_tags_that_phrase_has_as_words_are_tags(read: Read, space: str) -> None:
    words = "{1&gt;Ba {b>de&lt;b} {2} gi&lt;1}&lt;2} &amp; ko."
    unit = f'<trans-unit id="1"{space}><source>{words}</source></trans-unit>'
    document = read("a.mxliff", f'<xliff version="1.2"><file source-language="a"><body>{unit}</body></file></xliff>')
    (passage,) = document.passages
    assert passage.text == "Ba de {2} gi & ko."
    assert [mark.raw for mark in passage.marks] == ["{1&gt;", "{b>", "&lt;b}", "&lt;1}", "&lt;2}"]
    assert [mark.role for mark in passage.marks] == ["opens", "opens", "closes", "closes", "alone"]
    assert "{1&gt;BA {b>DE&lt;b} {2} GI&lt;1}&lt;2} &amp; KO.</target>" in shouted_text(document)


def test_units_are_told_by_their_names(read: Read) -> None:
    """Of Trados and memoQ all stand in one line, and the editor shows the numbers of segments."""
    marked = '<mrk mtype="seg" mid="7">gi</mrk>'
    units = '<trans-unit id="a&amp;b"><source>ba</source></trans-unit><trans-unit id="c"><source>gi</source>'
    units += f"<seg-source>{marked}</seg-source></trans-unit>"
    document = read("a.xlf", f'<xliff version="1.2"><file><body>\n{units}</body></file></xliff>')
    assert [each.where("a.xlf") for each in document.passages] == ["a.xlf:2: unit 'a&b'", "a.xlf:2: segment '7'"]
    segments = '<segment id="s"><source>ba</source></segment><segment><source>de</source></segment>'
    document = read("a.xlf", f'<xliff version="2.0"><file><unit id="u">{segments}</unit></file></xliff>')
    assert [each.where("a.xlf") for each in document.passages] == [
        "a.xlf:1: unit 'u', segment 's'",
        "a.xlf:1: unit 'u'",
    ]


def test_what_marks_of_two_ends_say_is_not_to_be_translated_stays(read: Read) -> None:
    source = 'ba <sm id="1" translate="no"/>de <ph id="2"/><sm id="3"/>gi<em startRef="3"/><em startRef="1"/>'
    source += ' ko <sm id="4" translate="no"/><pc id="5">lu<em startRef="4"/></pc>'
    made = shouted_text(
        read("a.xlf", f'<xliff version="2.0"><unit><segment><source>{source}</source></segment></unit></xliff>')
    )
    assert f"<target>{source.replace('ba', 'BA').replace('ko', 'KO')}</target>".replace("lu", "LU") in made


@pytest.mark.parametrize("name", ['mq:locked="locked"', 'm:locked="true"'])
def test_what_is_locked_stays(read: Read, name: str) -> None:
    head = '<xliff version="1.2" xmlns:mq="x" xmlns:m="y"><file source-language="a"><body><trans-unit id="1"'
    text = f"{head} {name}><source>Ba.</source><target/></trans-unit><trans-unit><source>De.</source></trans-unit>"
    assert texts(read("a.xlf", f"{text}</body></file></xliff>")) == ["De."]


def test_what_trados_has_locked_stays(read: Read) -> None:
    lock = ' locked="true"'
    head = '<xliff version="1.2" xmlns:sdl="sdl:1.0"><file source-language="a"><body><trans-unit id="1"><source>Ba. De.'
    marks = [f'<mrk mtype="seg" mid="{number}">{text}</mrk>' for number, text in enumerate(("Ba.", "De."), 1)]
    for targets in ("", '<target><mrk mtype="seg" mid="1"/> <mrk mtype="seg" mid="2"></mrk></target>'):
        for locked, said in (("", ["Ba.", "De."]), ("1", ["De."]), ("2", ["Ba."]), ("12", [])):
            segs = "".join(f'<sdl:seg id="{one}"{lock * (one in locked)}/>' for one in "12")
            unit = (
                f"{head}</source><seg-source>{' '.join(marks)}</seg-source>{targets}<sdl:seg-defs>{segs}</sdl:seg-defs>"
            )
            document = read("a.sdlxliff", f"{unit}</trans-unit></body></file></xliff>")
            assert texts(document) == said
            made = shouted_text(document)
            assert [("BA." in made), ("DE." in made)] == ["Ba." in said, "De." in said]
            assert ("<target" in made) == bool(targets or said)
            if "1" in locked and said:
                assert '<mrk mtype="seg" mid="1"></mrk> <mrk mtype="seg" mid="2">DE.</mrk>' in made


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<img src="a.png" alt="a dog">', '<img src="a.png" alt="A DOG">'),
        (
            "<p><img alt='it&#39;s' title=ba> de</p>",
            "<p><img alt='IT&#39;S' title=\"BA\"> DE</p>",
        ),
        ('<p>ba <img alt="ko"> de</p>', '<p>BA <img alt="ko"> DE</p>'),
        (
            '<input placeholder="ba &amp; de" name="ko"><input type=submit value=lu>',
            '<input placeholder="BA &amp; DE" name="ko"><input type=submit value="LU">',
        ),
        ('<input type="text" value="ba"><meta name="author" content="ba">', None),
        ('<meta name="description" content="ba">', '<meta name="description" content="BA">'),
        (
            '<div translate="no"><img alt="ba"></div><img translate="no" alt="ba"><p><code title="ba">de</code></p>',
            None,
        ),
        ("<p>漢<rp>(</rp><rt>kan</rt><rp>)</rp>de</p>", "<p>漢<rp>(</rp><rt>kan</rt><rp>)</rp>DE</p>"),
        (
            '<h1>ba<a class="headerlink" href="#ba" title="ko">¶</a></h1>',
            '<h1>BA<a class="headerlink" href="#ba" title="ko">¶</a></h1>',
        ),
    ],
)
def test_attributes_of_pages(read: Read, text: str, expected: str | None) -> None:
    """And what stands in the words of a page and is none of them: readings of ruby, links to headings."""
    assert shouted_text(read("a.html", text)) == (text if expected is None else expected)
