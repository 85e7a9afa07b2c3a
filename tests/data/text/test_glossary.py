"""Terms are found in texts by whole words, inflected ones too; glossaries come in tables and as TBX."""

import tracemalloc
import unicodedata
from pathlib import Path

import pytest
from openpyxl import Workbook

from heedful.data.text.glossary import Glossary, Term, entries_in, glossary_of, read_glossary
from heedful.errors import HeedError, InputError


def sources(glossary: Glossary, text: str) -> list[str]:
    return [text[found.begin : found.end] for found in glossary.find(text)]


def english(*terms: str) -> Glossary:
    return glossary_of([(term, "X") for term in terms], language="English")


@pytest.mark.parametrize(
    ("terms", "text", "found"),
    [
        (["dog"], "Dogs and the DOG's doghouse", ["Dogs", "DOG"]),
        (["dogs"], "a dog", ["dog"]),
        (["hot dog", "dog"], "A hot dog, a dog", ["hot dog", "dog"]),
        (["hot dog"], "so hot, dog", []),
        (["ice-cream"], "ice cream", ["ice cream"]),
        (["IT", "US"], "it is in IT of us", ["IT"]),
        (["organ"], "an organization", []),
        (["run", "running shoe"], "two running shoes", ["running shoes"]),
        (["a", "a b", "b c"], "a b c", ["a b"]),
    ],
)
def test_terms_in_a_text(terms: list[str], text: str, found: list[str]) -> None:
    assert sources(english(*terms), text) == found


@pytest.mark.parametrize(
    "term",
    [
        *("R&D", "Node.js", "TCP/IP", "and/or", "St. John", "U.S.", "AT&T", "version 2.0", "No. 5", "J. Smith"),
        *("file (PDF)", "input, output", "24/7", "9/11", "C++", ".NET", "@home", "dogs\u2019", "pre-", "C++ & C#"),
    ],
)
def test_signs_of_a_term_are_found_as_it_has_them(term: str) -> None:
    for text in (f"It is {term} here", term, f"({term})", f"{term}, {term}"):
        assert sources(english(term), text) == [term] * text.count(term)


@pytest.mark.parametrize(
    ("terms", "text", "found"),
    [
        (["R&D"], "our R & D, R/D", ["R & D"]),
        (["R & D"], "our R&D", ["R&D"]),
        (["input, output"], "input; output", []),
        (["dogs'"], "the dogs\u2019 house", ["dogs\u2019"]),
        *((["C++"], text, []) for text in ("vitamin C", "We have a C here", "C#", "C'est", "C ++")),
        (["@home"], "I am home", []),
        ([".NET"], "The NET is red", []),
        (["C++", "C#", "C"], "C#, C++ and C", ["C#", "C++", "C"]),
        (["C", "C++"], "c++", ["c++"]),
        (["a/", "/b", "b"], "a/b", ["a/", "b"]),
    ],
)
def test_signs_of_a_term_must_be_in_the_text(terms: list[str], text: str, found: list[str]) -> None:
    glossary = english(*terms)
    assert sources(glossary, text) == found
    if "C#" in terms:
        assert [each.term.source for each in glossary.find(text)] == found


@pytest.mark.parametrize("terms", [["universities", "University", "university"], ["Polishes", "polish", "Polish"]])
def test_of_terms_of_one_stem_the_one_that_is_written_so(terms: list[str]) -> None:
    glossary = english(*terms)
    for text in (*terms, " and ".join(terms)):
        assert [found.term.source for found in glossary.find(text)] == text.split(" and ")
    assert [found.term.source for found in glossary.find(terms[0].upper())] == terms[:1]


def test_other_languages() -> None:
    assert sources(glossary_of([("Hund", "dog")], language="de"), "Die Hunde des Hundes") == ["Hunde", "Hundes"]
    unknown = glossary_of([("hund", "dog")], language="column 1")
    assert sources(unknown, "Hund Hunde") == ["Hund"]
    assert sources(glossary_of([("犬", "dog"), ("子犬", "puppy")], language="ja"), "小さな子犬と犬") == ["子犬", "犬"]


@pytest.mark.parametrize(
    ("term", "text"), [("हिन्दी", "मैं हिन्दी पढ़ता हूँ"), ("می\u200cکنم", "کار می\u200cکنم."), ("čaj", "čaj")]
)
def test_marks_and_joiners_are_parts_of_words(term: str, text: str) -> None:
    for form in ("NFC", "NFD"):
        glossary = glossary_of([(unicodedata.normalize(form, term), "X")], language="column 1")
        assert sources(glossary, text) == [term]
    assert sources(glossary_of([(term[:2], "X")], language="column 1"), text) == []


def test_tables_and_several_forms(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("dog\tHund|Hunde\ncat\tKatze\n\ndog\tRüde\n")
    glossary = read_glossary(path, source="en", target="de")
    assert glossary.terms == (Term("dog", ("Hund", "Hunde", "Rüde")), Term("cat", ("Katze",)))
    (tmp_path / "terms.csv").write_text('German,English\nHund,dog\n"Hund, kleiner",puppy\n')
    turned = read_glossary(tmp_path / "terms.csv", source="en", target="de")
    assert turned.terms == (Term("dog", ("Hund",)), Term("puppy", ("Hund, kleiner",)))


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("Term (EN)\tTerm (DE)", "dog\tHund"),
        ("Term (DE)\tTerm (EN)", "Hund\tdog"),
        ("Term\tTranslation\tNotes", "dog\tHund\tan animal"),
        ("Source term\tTarget term", "dog\tHund"),
        ("source term\ttarget term", "dog\tHund"),
        ("English (UK)\tGerman (Germany)", "dog\tHund"),
        ("German (Germany)\tEnglish (UK)", "Hund\tdog"),
        ("Source Language\tTarget Language", "dog\tHund"),
        ("Term EN\tTerm DE", "dog\tHund"),
        ("term_de\tterm_en", "Hund\tdog"),
        ("EN term\tDE term", "dog\tHund"),
        ("Term [EN]\tTerm [DE]", "dog\tHund"),
        ("Term\tGerman", "dog\tHund"),
        ("Translation\tEnglish (UK)\tNotes", "Hund\tdog\tan animal"),
        ("English\tFrench\tGerman", "dog\tchien\tHund"),
        ("en\tfr\tde", "dog\tchien\tHund"),
        ("En\tDe", "dog\tHund"),
        ("Quelle\tZiel", "dog\tHund"),
        ("Ausgangssprache\tZielsprache", "dog\tHund"),
        ("Begriff\tÜbersetzung", "dog\tHund"),
        ("Englisch\tDeutsch", "dog\tHund"),
        ("allemand\tanglais", "Hund\tdog"),
        ("Word\tTranslation", "dog\tHund"),
        ("Key\tValue", "dog\tHund"),
        ("From\tTo", "dog\tHund"),
        ("L1\tL2", "dog\tHund"),
        ("original\ttranslated", "dog\tHund"),
        ("Source: English\tTarget: German", "dog\tHund"),
        ("target_de\tsource_en", "Hund\tdog"),
        ("Translation\tEnglish (UK)", "Hund\tdog"),
        ("ID\tEnglish_United_States_Def\tEnglish_United_States\tTerm_Info\tGerman_Germany", "1\t\tdog\tx\tHund"),
        ("Term [en]\tDescription [en]\tTerm [de]\tDescription [de]", "dog\tan animal\tHund\tein Tier"),
    ],
)
def test_a_header_of_terms_is_no_term(tmp_path: Path, header: str, row: str) -> None:
    """And says which columns are meant, of more than two."""
    (tmp_path / "terms.tsv").write_text(f"{header}\n{row}\n")
    assert read_glossary(tmp_path / "terms.tsv", source="en", target="de").terms == (Term("dog", ("Hund",)),)
    if header.count("\t") == 1:
        book = Workbook()
        for cells in (header, row):
            book.active.append(cells.split("\t"))
        book.save(tmp_path / "terms.xlsx")
        assert read_glossary(tmp_path / "terms.xlsx", source="en", target="de").terms == (Term("dog", ("Hund",)),)


@pytest.mark.parametrize("row", ["English\tEnglisch", "source\tQuelle", "word\tWort", "target language\tZielsprache"])
def test_a_term_that_is_the_name_of_a_column_is_no_header(tmp_path: Path, row: str) -> None:
    (tmp_path / "terms.tsv").write_text(f"{row}\ndog\tHund\n")
    assert len(read_glossary(tmp_path / "terms.tsv", source="en", target="de").terms) == 2


def test_several_columns_of_a_language_are_synonyms(tmp_path: Path) -> None:
    """As memoQ writes them. A row without a translation is left out, and counted."""
    path = tmp_path / "terms.csv"
    path.write_text("No;English;Info;English;Info;German;Info;German\n1;dog;x;hound;;Hund;y;Rüde\n2;cat;;;;;;\n")
    glossary = read_glossary(path, source="en", target="de")
    assert glossary.terms == (Term("dog", ("Hund", "Rüde")), Term("hound", ("Hund", "Rüde")))
    assert glossary.left_out == 1


@pytest.mark.parametrize(
    "lines",
    [
        ["English;German;Status", "dog;Hund;approved", "dog;Köter;Forbidden", "cat;Katze;"],
        ["English;Info;German;Info;German;Info", "dog;x;Hund;Case;Köter;Case;Forbidden", "cat;;Katze;;;"],
        [
            "English;Term status;German;Term status",
            "dog;Preferred;Hund;Preferred",
            "cat;;Katze;",
            "hound;do not use;Hund;",
        ],
    ],
)
def test_what_a_table_calls_forbidden_is_not_demanded(tmp_path: Path, lines: list[str]) -> None:
    """Of one column for the row, or of one behind each term, as memoQ writes it."""
    path = tmp_path / "terms.csv"
    path.write_text("\n".join(lines).replace("Case;Forbidden", '"Case;Forbidden"') + "\n")
    glossary = read_glossary(path, source="en", target="de")
    assert glossary.terms == (Term("dog", ("Hund",)), Term("cat", ("Katze",)))
    assert glossary.left_out == len(lines) - 3


def test_an_object_of_json_has_a_term_in_each_key(tmp_path: Path) -> None:
    (tmp_path / "terms.json").write_text('{"dog": "Hund|Hunde", "cat": "Katze"}')
    read = read_glossary(tmp_path / "terms.json", source="en", target="de")
    assert read.terms == (Term("dog", ("Hund", "Hunde")), Term("cat", ("Katze",)))


def test_rows_that_say_their_languages(tmp_path: Path) -> None:
    """As DeepL writes them."""
    path = tmp_path / "terms.csv"
    path.write_text("dog,Hund,EN,DE\nKatze,cat,DE,EN\ncow,Kuh,en-GB,de\n")
    assert read_glossary(path, source="en", target="de").terms == (Term("dog", ("Hund",)), Term("cow", ("Kuh",)))
    assert read_glossary(path).terms == (Term("dog", ("Hund",)), Term("cow", ("Kuh",)))
    with pytest.raises(
        InputError, match="its terms are from EN to DE, DE to EN, en-GB to de, and en is translated to fr"
    ):
        read_glossary(path, source="en", target="fr")


def test_comments_have_no_term(tmp_path: Path) -> None:
    """As OmegaT writes them."""
    (tmp_path / "terms.txt").write_text("# mine\ndog\tHund\n#1\tNr. 1\n")
    terms = read_glossary(tmp_path / "terms.txt", source="en", target="de").terms
    assert terms == (Term("dog", ("Hund",)), Term("#1", ("Nr. 1",)))


def test_terms_of_other_languages_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("English\tFrench\ndog\tchien\n")
    with pytest.raises(InputError, match=r"(?m)its columns are 'English', 'French', and en is translated to de$"):
        read_glossary(path, source="en", target="de")
    assert read_glossary(path, source="en", target="fr").terms == (Term("dog", ("chien",)),)
    assert read_glossary(path).terms == (Term("dog", ("chien",)),), "of a model that does not say its languages"
    path.write_text("it\tes\ndog\tHund\n")
    assert read_glossary(path, source="en", target="de").terms[0] == Term("it", ("es",)), "short words are codes too"


def test_a_text_has_a_term_in_each_line() -> None:
    assert entries_in("hot  dog\tWürstchen|Hotdog\r\n\n cat\t Katze ") == [
        ("hot dog", "Würstchen|Hotdog"),
        ("cat", "Katze"),
    ]
    for text, what in (("dog", "line 1 has 1 column"), ("a\tb\na\tb\tc", "line 2 has 3 columns")):
        with pytest.raises(InputError, match=what):
            entries_in(text)


TBX = """<?xml version="1.0"?><martif type="TBX" xml:lang="en"><text><body>
<termEntry id="1"><langSet xml:lang="en"><tig><term>dog</term></tig><tig><term>hound</term></tig></langSet>
<langSet xml:lang="de"><tig><term>Hund</term></tig><tig><term>Köter</term>
<termNote type="administrativeStatus">deprecatedTerm-admn-sts</termNote></tig></langSet></termEntry>
<termEntry id="2"><langSet xml:lang="en"><tig><term>cat</term></tig></langSet></termEntry>
</body></text></martif>"""


def test_tbx_of_both_versions(tmp_path: Path) -> None:
    newer = TBX.replace("martif", "tbx").replace("termEntry", "conceptEntry").replace("langSet", "langSec")
    for name, text in (("old", TBX), ("new", newer.replace("tig>", "termSec>"))):
        (tmp_path / name).write_text(text)
        glossary = read_glossary(tmp_path / name, source="en", target="de")
        assert glossary.terms == (Term("dog", ("Hund",)), Term("hound", ("Hund",)))


def test_what_multiterm_exports(tmp_path: Path) -> None:
    term = "<languageGrp><language lang='{}' type='{}'/>{}</languageGrp>"
    own = "<termGrp><term>{}</term><descripGrp><descrip type='Status'>{}</descrip></descripGrp></termGrp>"
    german = own.format("Hund", "Preferred") + own.format("Köter", "Forbidden")
    both = term.format("EN", "English", own.format("dog", "")) + term.format("DE", "German", german)
    text = f"<?xml version='1.0' encoding='UTF-16'?><mtf><conceptGrp><concept>1</concept>{both}</conceptGrp></mtf>"
    (tmp_path / "terms.xml").write_text(text, encoding="utf-16")
    assert read_glossary(tmp_path / "terms.xml", source="en", target="de").terms == (Term("dog", ("Hund",)),)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("dog\n", "expected at least 2"),
        ("dog\t\n", "a term without a translation"),
        ("...\tHund\n", "a term without a word"),
        ("\n", "."),
        (TBX[:200], "not well-formed XML"),
        (TBX.replace("<martif", '<!DOCTYPE m [<!ENTITY a "b">]><martif'), "entities"),
        (TBX.replace('xml:lang="de"', ""), "without xml:lang"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "terms").write_text(text)
    with pytest.raises(HeedError, match=what):
        read_glossary(tmp_path / "terms", source="en", target="de")


@pytest.mark.parametrize("name", ["terms.yaml", "terms.yml"])
def test_yaml_is_told_by_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("dog: Hund\n")
    with pytest.raises(InputError, match="YAML, which holds no table") as caught:
        read_glossary(tmp_path / name, source="en", target="de")
    assert caught.value.fix.startswith("give a table, in each line a text, a TAB and its translation")


def test_no_term_is_an_error() -> None:
    with pytest.raises(InputError, match="no term"):
        glossary_of([])


def test_a_status_may_be_an_element(tmp_path: Path) -> None:
    """As files of 2019 write it in the style whose elements are called as the data categories."""
    old = "<tig><term>Karre</term></tig>"
    new = old.replace("</term>", "</term><m:administrativeStatus>deprecatedTerm-admn-sts</m:administrativeStatus>")
    text = TBX.replace("<martif", '<martif xmlns:m="http://www.tbxinfo.net/ns/min"')
    for added, forms in ((old, True), (new, False)):
        (tmp_path / "t.tbx").write_text(text.replace('xml:lang="de">', f'xml:lang="de">{added}', 1))
        terms = read_glossary(tmp_path / "t.tbx", source="en", target="de").terms
        assert any("Karre" in term.forms for term in terms) is forms


def test_many_terms_that_begin_alike_cost_no_more_than_the_text_has_words() -> None:
    glossary, text = english(*(f"ba gi{number}" for number in range(500)), "ba de"), "ba " * 500 + "de"
    glossary.find("ba")
    tracemalloc.start()
    found = sources(glossary, text)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == ["ba de"]
    assert most < 1 << 20  # bytes
