"""Documents for tests, and broken ones."""

import io
import re
import zipfile
from collections.abc import Mapping, Sequence

from heedful.data.documents.passages import Document, Mark

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
XLIFF = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file original="x" source-language="low" datatype="plaintext">
    <body>
      <trans-unit id="1">
        <source>ba <g id="1">de gi</g> <bpt id="2">&lt;b></bpt>ko<ept id="2">&lt;/b></ept>. Lu!<x id="3"/></source>
      </trans-unit>
      <trans-unit id="2"><source>ba</source><target state="final">NE</target></trans-unit>
      <trans-unit id="3"><source>ma &amp; ne</source><target state="needs-translation"/></trans-unit>
      <trans-unit id="4" translate="no"><source>pi</source></trans-unit>
      <trans-unit id="5" approved="yes"><source>pi</source><target/></trans-unit>
      <trans-unit id="6"><source>ro<![CDATA[ <su>]]></source><alt-trans><target>X</target></alt-trans></trans-unit>
    </body>
  </file>
</xliff>
"""
XLIFF2 = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en">
 <file id="f1"><unit id="u1"><originalData><data id="d">ba</data></originalData>
  <segment id="s1"><source>ba <pc id="1">de</pc> gi<ph id="2"/>.</source></segment>
  <ignorable><source> </source></ignorable>
  <segment id="s2" state="initial"><source>Ko <sc id="3"/>lu<ec startRef="3"/>.</source><target></target></segment>
  <segment id="s3" state="final"><source>ba</source><target>BA</target></segment>
 </unit><unit id="u2" translate="no"><segment><source>ba</source></segment></unit></file></xliff>
"""
PO = r"""# header
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"

#: a.c:1
#, c-format
msgid "ba %d \"de\"\n"
msgstr ""

#, fuzzy
#| msgid "ba"
msgid "ba de"
msgstr "NE"

msgctxt "menu"
msgid "pi"
msgstr "PI"

msgid "ko"
msgid_plural "%d ko"
msgstr[0] ""
msgstr[1] ""

msgid ""
"lu ma "
"ne.\n"
"Pi ro"
msgstr ""

#~ msgid "su"
#~ msgstr ""
"""
SRT = "\ufeff1\r\n00:00:01,000 --> 00:00:02,500\r\nba <i>de gi</i>\r\nko lu.\r\n\r\n"
SRT += "2\r\n00:00:03,000 --> 00:00:04,500\r\n- Ma.\r\n- {\\an8}Ne!\r\n\r\n3\r\n00:00:05,000 --> 00:00:06,000\r\n\r\n"
VTT = """WEBVTT - ba

NOTE ba de

STYLE
::cue { color: red }

ba
00:01.000 --> 00:02.500 align:start
<v Bob>ba &amp; de <c.red>gi</c>
"""


def xliff(body: str) -> bytes:
    return f'<xliff version="1.2"><file source-language="en"><body>{body}</body></file></xliff>'.encode()


def run(text: str, format_: str = "", *, more: str = "") -> str:
    shown = f"<w:rPr>{format_}</w:rPr>" if format_ else ""
    return f'<w:r>{shown}<w:t xml:space="preserve">{text}</w:t>{more}</w:r>'


def field(kind: str) -> str:
    return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'


BODY = (
    f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<w:document {W}><w:body>'
    f'<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr>{run("ba de")}</w:p>\n'
    f'<w:p>{run("gi ")}{run("ko", "<w:b/>")}<w:proofErr w:type="x"/>\n'
    f"{run(' lu &amp; ma ', more='<w:tab/><w:t>ne</w:t>')}"
    f'<w:hyperlink w:anchor="x">{run(" pi ro", "<w:i/>")}</w:hyperlink>'
    f'<w:bookmarkStart w:id="0" w:name="b"/>{run(".")}<w:bookmarkEnd w:id="0"/>{run(" Su ")}{field("begin")}'
    f"<w:r><w:instrText>PAGE</w:instrText></w:r>{field('separate')}{run('12')}{field('end')}{run(' ba')}</w:p>"
    "<w:p/><w:sectPr/></w:body></w:document>"
)


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return made.getvalue()


def word(body: str = BODY, *, main: str = "word/document.xml", **more: str | bytes) -> bytes:
    """A .docx file with its main part and the members of `more`; those whose names mark them as texts are related to
    it."""
    texts = {name: re.match(r"word/([a-z]+)", name) for name in more}
    related = [(kind[1], name.removeprefix("word/")) for name, kind in texts.items() if kind]
    folder, _, file = main.rpartition("/")
    relationships = {
        "_rels/.rels": relationships_of([("officeDocument", main)]),
        f"{folder}/_rels/{file}.rels": relationships_of([("styles", "styles.xml"), *related]),
    }
    members = {"[Content_Types].xml": "<Types/>", **relationships, main: body, "word/styles.xml": "<x/>"}
    return zipped({**members, **more})


def relationships_of(targets: Sequence[tuple[str, str]]) -> str:
    """A file of relationships to these parts, given as pairs of kind and target."""
    types = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    own = "".join(
        f'<Relationship Id="rId{number}" Type="{types}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets, 1)
    )
    namespace = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<Relationships xmlns="{namespace}">{own}</Relationships>'


A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="x" xmlns:p="y"'
ANY = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
SLIDE = (
    f"{ANY}<p:sld {A}><p:cSld><p:spTree><p:sp><p:nvSpPr><p:cNvPr id='2' name='ba'/></p:nvSpPr><p:txBody><a:bodyPr/>"
    '<a:p><a:pPr lvl="1"/><a:r><a:rPr lang="en-US" dirty="0"/><a:t>ba </a:t></a:r><a:r><a:rPr lang="en-US" b="1"/>'
    '<a:t>de &amp; gi</a:t></a:r><a:br><a:rPr lang="en-US"/></a:br><a:r><a:rPr lang="en-US"><a:hlinkClick r:id="rId9"/>'
    '</a:rPr><a:t>ko</a:t></a:r><a:endParaRPr lang="en-US"/></a:p><a:p><a:fld id="{1}" type="slidenum"><a:rPr/>'
    "<a:t>3</a:t></a:fld><a:endParaRPr/></a:p></p:txBody></p:sp><p:graphicFrame><a:tbl><a:tr><a:tc><a:txBody><a:p><a:r>"
    "<a:t>lu</a:t></a:r></a:p></a:txBody></a:tc></a:tr></a:tbl></p:graphicFrame></p:spTree></p:cSld></p:sld>"
)
NOTES = f"{ANY}<p:notes {A}><p:txBody><a:p><a:r><a:rPr lang='en'/><a:t>ma ne</a:t></a:r></a:p></p:txBody></p:notes>"
SHARED = (
    f'{ANY}<sst xmlns="x" count="9"><si><t>ba de</t></si><si/><si><t xml:space="preserve">gi\nko &amp; lu\n</t>'
    "<rPh sb='0' eb='1'><t>ma</t></rPh></si><si><r><t>ne </t></r><r><rPr><b/></rPr><t>pi\nro</t></r></si>"
    "<si><t>yes</t></si><si><t>total</t></si></sst>"
)
SHEET = (
    f'{ANY}<worksheet xmlns="x"><sheetData><row r="1"><c r="A1" s="1" t="s"><v>0</v></c><c r="B1" t="s"><v>4</v></c>'
    '<c r="C1" t="inlineStr"><is><t>su</t></is></c><c r="D1" t="str"><f>IF(B1="yes","ba","de ""x""")</f><v>ba</v></c>'
    '<c r="E1"><v>12.5</v></c><c r="F1" t="s"><v>5</v></c><c r="G1" t="s"><v>2</v></c></row></sheetData></worksheet>'
)
CELL = '<table:table-cell office:value-type="{}"{}><text:p>{}</text:p></table:table-cell>'
OPEN = (
    f'{ANY}<office:document-content xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:office="o"'
    ' xmlns:table="t">'
    "<text:tracked-changes><text:deletion><text:p>old</text:p></text:deletion></text:tracked-changes>"
    '<text:h text:outline-level="1">ba <text:span text:style-name="T1">de</text:span></text:h>'
    '<text:list><text:list-item><text:p>gi<text:note text:id="n"><text:note-citation>1</text:note-citation>'
    "<text:note-body><text:p>ma <office:annotation><text:p>pi</text:p></office:annotation>ne</text:p></text:note-body>"
    "</text:note> ko &amp; lu<text:line-break/><text:a>su</text:a><text:s/><text:page-number>7</text:page-number> ro"
    "</text:p></text:list-item></text:list><text:p/>"
    + CELL.format("string", "", "ba")
    + CELL.format("float", ' office:value="1"', "one")
    + CELL.format("string", ' table:formula="of:=IF([.A1]=&quot;yes&quot;;&quot;ba&quot;;2)"', "ba")
    + CELL.format("string", "", "yes")
    + "</office:document-content>"
)


def presentation(slide: str = SLIDE, notes: str = NOTES) -> bytes:
    """A presentation of two slides, the second file first, the first of which has notes."""
    return zipped(
        {
            "_rels/.rels": relationships_of([("officeDocument", "ppt/presentation.xml")]),
            "ppt/presentation.xml": f'{ANY}<p:presentation {A}><p:sldId id="9" r:id="rId2"/><p:sldId r:id="rId1"/>'
            "</p:presentation>",
            "ppt/_rels/presentation.xml.rels": relationships_of(
                [("slide", "slides/slide1.xml"), ("slide", "slides/slide2.xml"), ("theme", "theme.xml")]
            ),
            "ppt/slides/slide1.xml": slide.replace("ko", "su").replace("lu", "12"),
            "ppt/slides/slide2.xml": slide,
            "ppt/slides/_rels/slide2.xml.rels": relationships_of([("notesSlide", "../notesSlides/notesSlide1.xml")]),
            "ppt/notesSlides/notesSlide1.xml": notes,
            "ppt/theme.xml": "<x>ba</x>",
        }
    )


def workbook(shared: str = SHARED, sheet: str = SHEET) -> bytes:
    return zipped(
        {
            "_rels/.rels": relationships_of([("officeDocument", "xl/workbook.xml")]),
            "xl/workbook.xml": f'{ANY}<workbook xmlns:r="x"><sheet name="ba" r:id="rId1"/></workbook>',
            "xl/_rels/workbook.xml.rels": relationships_of(
                [("worksheet", "worksheets/sheet1.xml"), ("sharedStrings", "sharedStrings.xml")]
            ),
            "xl/worksheets/sheet1.xml": sheet,
            "xl/worksheets/_rels/sheet1.xml.rels": relationships_of([("table", "../tables/table1.xml")]),
            "xl/tables/table1.xml": '<table><tableColumn id="1" name="Total"/></table>',
            "xl/sharedStrings.xml": shared,
        }
    )


def opened(kind: str, content: str = OPEN, **more: str) -> bytes:
    header = f"{ANY}<x xmlns:text='urn:oasis:names:tc:opendocument:xmlns:text:1.0'><text:p>ba ro</text:p></x>"
    members = {"mimetype": f"application/vnd.oasis.opendocument.{kind}", "content.xml": content, "styles.xml": header}
    return zipped({**members, "meta.xml": "<x>ba</x>", **more})


DOCUMENTS: dict[str, bytes] = {
    "a.txt": b"ba de. Gi!\r\n\r\nko\r\n",
    "a.md": b"# ba *de*\n\n- gi [ko](x)\n- `lu`\n",
    "a.html": b"<p>ba <b>de</b>. Gi<br>ko<p translate=no>lu",
    "a.xlf": XLIFF.encode(),
    "b.xliff": XLIFF2.encode("utf-16"),
    "a.po": PO.encode(),
    "a.srt": SRT.encode(),
    "a.vtt": VTT.encode(),
    "a.docx": word(),
    "a.pptx": presentation(),
    "a.xlsx": workbook(),
    "a.odt": opened("text"),
    "a.ods": opened("spreadsheet"),
    "a.odp": opened("presentation"),
}

BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
OUTSIDE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
BROKEN: dict[str, tuple[str, bytes]] = {
    "latin-1 txt": ("a.txt", "Grüße".encode("latin-1")),
    "half a character": ("a.txt", "Grüß".encode()[:-1]),
    "NUL": ("a.txt", b"ba\0de"),
    "odd UTF-16": ("a.txt", b"\xff\xfeb\0a"),
    "a picture": ("a.txt", b"\xff\xd8\xff\xe0\0\0"),
    "a zip as txt": ("a.txt", word()),
    "1 GB of a line, in little": ("a.txt", b"ba " * 400_000),
    "latin-1 md": ("a.md", "# Grüße".encode("latin-1")),
    "gzip as md": ("a.md", b"\x1f\x8b\x08\0\0"),
    "html of another encoding": ("a.html", '<meta charset="utf-8"><p>Grüße'.encode("latin-1")),
    "html of an unknown one": ("a.html", b'<meta charset="klingon"><p>ba'),
    "html of no encoding": ("a.htm", "<p>Grüße".encode("latin-1")),
    "xlf: a bomb": ("a.xlf", XLIFF.replace("<xliff", f"{BOMB}<xliff", 1).replace("ba ", "&b; ", 1).encode()),
    "xlf: a file outside": ("a.xlf", XLIFF.replace("<xliff", f"{OUTSIDE}<xliff", 1).replace("ba ", "&a; ").encode()),
    "xlf: cut": ("a.xlf", XLIFF.encode()[:600]),
    "xlf: a tag not closed": ("a.xlf", XLIFF.replace("</g>", "").encode()),
    "xlf: tags that cross": ("a.xlf", XLIFF.replace("<source>ba <g", "<g><source>ba <g").encode()),
    "xlf: another root": ("a.xlf", b"<tmx><tu/></tmx>"),
    "xlf: html": ("a.xlf", b"<!doctype html><p>ba<br>"),
    "xlf: no unit": ("a.xliff", b'<xliff version="1.2"><file/></xliff>'),
    "xlf: empty": ("a.xlf", b""),
    "xlf: another encoding": ("a.xlf", XLIFF.replace("ba", "bä").encode("latin-1")),
    "xlf: an unknown encoding": ("a.xlf", XLIFF.replace("UTF-8", "klingon").encode()),
    "xlf: after its end": ("a.xlf", XLIFF.encode() + b"<x/>"),
    "xlf: an unknown entity": ("a.xlf", XLIFF.replace("&amp;", "&nbsp;").encode()),
    "po: cut in a string": ("a.po", PO.encode()[: PO.index("PI") + 1]),
    "po: no quotes": ("a.po", b"msgid ba\nmsgstr de\n"),
    "po: text": ("a.po", b"ba de gi\n"),
    "po: empty": ("a.po", b""),
    "po: another encoding": ("a.po", PO.replace("PI", "PÏ").encode("latin-1")),
    "srt: no cue": ("a.srt", b"ba de\n"),
    "srt: latin-1": ("a.srt", SRT.replace("ba", "bä").removeprefix("\ufeff").encode("latin-1")),
    "vtt: no head": ("a.vtt", VTT.removeprefix("WEBVTT").encode()),
    "vtt: no cue": ("a.vtt", b"WEBVTT\n"),
    "docx: cut": ("a.docx", word()[:-30]),
    "docx: half": ("a.docx", word()[: len(word()) // 2]),
    "docx: a byte": ("a.docx", word().replace(b"PK\x03\x04", b"PK\x03\x05", 1)),
    "docx: text": ("a.docx", b"ba de"),
    "docx: empty": ("a.docx", b""),
    "docx: another zip": ("a.docx", zipped({"xl/workbook.xml": "<x/>"})),
    "docx: leads out": ("a.docx", word(**{"../../etc/x": b"x"})),
    "docx: leads to the root": ("a.docx", word(**{"/etc/x": b"x"})),
    "docx: leads out backwards": ("a.docx", word(**{"word\\..\\..\\x": b"x"})),
    "docx: cut inside": ("a.docx", word(BODY[:300])),
    "docx: a bomb": ("a.docx", word(BODY.replace("<w:document", f"{BOMB}<w:document"))),
    "docx: a file outside": ("a.docx", word(BODY.replace("<w:document", f"{OUTSIDE}<w:document"))),
    "pptx: a Word document": ("a.pptx", word().replace(b"word/document", b"ppt/documents")),
    "pptx: text": ("a.pptx", b"ba de"),
    "pptx: another prefix": ("a.pptx", presentation(SLIDE.replace("a:", "b:"))),
    "pptx: a slide that is cut": ("a.pptx", presentation(SLIDE[:500])),
    "xlsx: cut": ("a.xlsx", workbook()[:-30]),
    "xlsx: no main part": ("a.xlsx", zipped({"xl/sharedStrings.xml": SHARED})),
    "xlsx: a bomb": ("a.xlsx", workbook(SHARED.replace("<sst", f"{BOMB}<sst"))),
    "odt: cut": ("a.odt", opened("text")[:-30]),
    "odt: no kind": ("a.odt", zipped({"content.xml": OPEN})),
    "odt: with a password": ("a.odt", opened("text", **{"META-INF/manifest.xml": "<x:encryption-data/>"})),
    "odt: another prefix": ("a.odt", opened("text", OPEN.replace("text:", "t:").replace("t:1.0", "text:1.0"))),
    "odt: a bomb": ("a.odt", opened("text", OPEN.replace("<office:d", f"{BOMB}<office:d", 1))),
    "docx: a bomb in a header": ("a.docx", word(**{"word/header1.xml": f"{BOMB}<x>&b;</x>"})),
}  # fmt: skip


def shouted(document: Document) -> bytes:
    """The document in capitals, with its marks at the same points."""
    return document.written(
        [part if isinstance(part, Mark) else part.upper() for part in each.placed] for each in document.passages
    )


def shouted_text(document: Document) -> str:
    return shouted(document).decode()
