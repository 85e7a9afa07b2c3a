"""The phrasebook: right French, one for each English sentence, in sets that are disjoint and repeatable."""

import datetime
import os
import re
import subprocess
import sys
from collections import Counter
from random import Random

import pytest

from heedful.data.made.phrasebook import KINDS, Phrasebook, figures, grammar, phrasebook, split_of
from heedful.data.made.phrasebook.grammar import PRONOUNS, Phrase, being, clause, finish, noun_phrase, predicate
from heedful.data.made.phrasebook.words import ADJECTIVES, NOUNS, VERBS, Adjective
from heedful.errors import InputError

ME, YOU, HE, SHE, WE, THEY = (PRONOUNS[word] for word in ("I", "you", "he", "she", "we", "they"))
PAUL, ANNE = Phrase("Paul", "Paul", human=True), Phrase("Anne", "Anne", feminine=True, human=True)


def the(words: str, determiner: str = "the", *, plural: bool = False, negated: bool = False) -> Phrase:
    """A noun phrase from the singular English words."""
    *adjectives, noun = words.split()
    known = [ADJECTIVES[word] for word in adjectives]
    return noun_phrase(determiner, NOUNS[noun], *known, plural=plural, negated=negated)


def a(words: str, *, negated: bool = False) -> Phrase:
    return the(words, "a", negated=negated)


PHRASES = [
    (the("small black cat"), "the small black cat", "le petit chat noir"),
    (the("small black cat", plural=True), "the small black cats", "les petits chats noirs"),
    (the("beautiful red house", plural=True), "the beautiful red houses", "les belles maisons rouges"),
    (the("beautiful hotel", "this"), "this beautiful hotel", "ce bel hôtel"),
    (the("old man", "this"), "this old man", "ce vieil homme"),
    (the("new computer", "my"), "my new computer", "mon nouvel ordinateur"),
    (the("new hamster", "my"), "my new hamster", "mon nouveau hamster"),
    (the("old friend", "your", plural=True), "your old friends", "tes vieux amis"),
    (the("school", "my"), "my school", "mon école"),
    (the("small school", "my"), "my small school", "ma petite école"),
    (the("island", "this"), "this island", "cette île"),
    (the("hospital", "this"), "this hospital", "cet hôpital"),
    (the("owl"), "the owl", "le hibou"),
    (the("owl", plural=True), "the owls", "les hiboux"),
    (the("bean", "this"), "this bean", "ce haricot"),
    (the("harp", "her"), "her harp", "sa harpe"),
    (the("clock", "her"), "her clock", "son horloge"),
    (the("horse", "some", plural=True), "some horses", "des chevaux"),
    (the("newspaper", plural=True), "the newspapers", "les journaux"),
    (the("young girl", "some", plural=True), "some young girls", "de jeunes filles"),
    (the("old tool", "some", plural=True), "some old tools", "de vieux outils"),
    (the("brown shoe", plural=True), "the brown shoes", "les chaussures marron"),
    (the("bread", "some"), "some bread", "du pain"),
    (the("meat", "some"), "some meat", "de la viande"),
    (the("cold water", "some"), "some cold water", "de l'eau froide"),
    (a("honest engineer"), "an honest engineer", "un ingénieur honnête"),
    (a("useful umbrella"), "a useful umbrella", "un parapluie utile"),
    (the("lazy child", "many", plural=True), "many lazy children", "beaucoup d'enfants paresseux"),
    (the("mouse", "all the", plural=True), "all the mice", "toutes les souris"),
    (grammar.generic(NOUNS["orange"]), "oranges", "les oranges"),
    (grammar.possession(the("doctor"), NOUNS["car"]), "the doctor's car", "la voiture du médecin"),
    (
        grammar.possession(the("child", plural=True), NOUNS["toy"], ADJECTIVES["new"], plural=True),
        "the children's new toys",
        "les nouveaux jouets des enfants",
    ),
    (grammar.possession(ANNE, NOUNS["watch"]), "Anne's watch", "la montre d'Anne"),
    (
        grammar.superlative(NOUNS["car"], ADJECTIVES["expensive"]),
        "the most expensive car",
        "la voiture la plus chère",
    ),
    (grammar.superlative(NOUNS["hotel"], ADJECTIVES["old"]), "the oldest hotel", "le plus vieil hôtel"),
    (
        figures.counted(21, NOUNS["apple"], ADJECTIVES["red"]),
        "twenty-one red apples",
        "vingt et une pommes rouges",
    ),
    (figures.counted(81, NOUNS["egg"]), "eighty-one eggs", "quatre-vingt-un œufs"),
    (figures.ranked(1, NOUNS["house"]), "the first house", "la première maison"),
    (figures.ranked(11, NOUNS["bird"]), "the eleventh bird", "le onzième oiseau"),
    (figures.cardinal(0), "zero", "zéro"),
    (figures.cardinal(71), "seventy-one", "soixante et onze"),
    (figures.cardinal(80), "eighty", "quatre-vingts"),
    (figures.cardinal(4312), "four thousand, three hundred and twelve", "quatre mille trois cent douze"),
    (figures.cardinal(200), "two hundred", "deux cents"),
    (figures.year_words(1900), "nineteen hundred", "mille neuf cent"),
    (figures.year_words(1998), "nineteen ninety-eight", "mille neuf cent quatre-vingt-dix-huit"),
    (figures.year_words(2005), "two thousand and five", "deux mille cinq"),
    (figures.date(datetime.date(1998, 3, 3)), "on March 3", "le 3 mars"),
    (
        figures.date(datetime.date(1998, 3, 3), weekday=True, year=True),
        "on Tuesday, March 3, 1998",
        "le mardi 3 mars 1998",
    ),
    (figures.date(datetime.date(2031, 8, 1), year=True), "on August 1, 2031", "le 1er août 2031"),
    (figures.date_words(datetime.date(1998, 3, 1)), "on the first of March", "le premier mars"),
    (figures.date_words(datetime.date(1998, 4, 8)), "on the eighth of April", "le huit avril"),
    (
        figures.clock(15, 15, part=True),
        "a quarter past three in the afternoon",
        "trois heures et quart de l'après-midi",
    ),
    (figures.clock(1, 0), "one o'clock", "une heure"),
    (figures.clock(6, 30), "half past six", "six heures et demie"),
    (figures.clock(12, 30, part=True), "half past noon", "midi et demi"),
    (figures.clock(23, 50), "ten to midnight", "minuit moins dix"),
    (
        figures.clock(20, 45, part=True),
        "a quarter to nine in the evening",
        "neuf heures moins le quart du soir",
    ),
    (
        figures.clock(8, 35, part=True),
        "twenty-five to nine in the morning",
        "neuf heures moins vingt-cinq du matin",
    ),
    (figures.digital_clock(15, 5), "3:05 p.m.", "15 h 05"),
    (figures.digital_clock(12, 40), "12:40 p.m.", "12 h 40"),
    (figures.digital_clock(0, 0), "12:00 a.m.", "0 h"),
    (figures.price_words(12, 50), "twelve euros and fifty cents", "douze euros et cinquante centimes"),
    (figures.price_words(1, 1), "one euro and one cent", "un euro et un centime"),
    (figures.price(12, 50), "€12.50", "12,50 €"),
    (figures.price(1250), "€1,250", "1 250 €"),
]

SENTENCES = [
    (
        finish(
            clause(
                the("brother", "my"),
                VERBS["buy"],
                "future",
                figures.counted(3, NOUNS["apple"], ADJECTIVES["red"]),
                ("for twelve euros", "pour douze euros"),
            )
        ),
        "My brother is going to buy three red apples for twelve euros.",
        "Mon frère va acheter trois pommes rouges pour douze euros.",
    ),
    (finish(clause(HE, VERBS["eat"])), "He eats.", "Il mange."),
    (finish(clause(WE, VERBS["eat"], "progressive")), "We are eating.", "Nous mangeons."),
    (
        finish(clause(ME, VERBS["like"], "present", ("apples", "les pommes"))),
        "I like apples.",
        "J'aime les pommes.",
    ),
    (
        finish(clause(THEY, VERBS["go"], "present", ("to the market", "à le marché"))),
        "They go to the market.",
        "Ils vont au marché.",
    ),
    (finish(clause(SHE, VERBS["go"], "past")), "She went.", "Elle est allée."),
    (finish(clause(WE, VERBS["come back"], "past")), "We came back.", "Nous sommes revenus."),
    (
        finish(clause(ANNE, VERBS["get up"], "past", negated=True)),
        "Anne did not get up.",
        "Anne ne s'est pas levée.",
    ),
    (finish(clause(WE, VERBS["rest"])), "We rest.", "Nous nous reposons."),
    (finish(clause(YOU, VERBS["get up"], "want")), "You want to get up.", "Tu veux te lever."),
    (finish(clause(HE, VERBS["sing"], negated=True)), "He does not sing.", "Il ne chante pas."),
    (
        finish(clause(ME, VERBS["have"], "present", a("car", negated=True), negated=True)),
        "I do not have a car.",
        "Je n'ai pas de voiture.",
    ),
    (
        finish(clause(THEY, VERBS["buy"], "past", the("old jewel", "any", plural=True, negated=True), negated=True)),
        "They did not buy any old jewels.",
        "Ils n'ont pas acheté de vieux bijoux.",
    ),
    (
        finish(clause(SHE, VERBS["drink"], "can", the("water", "any", negated=True), negated=True)),
        "She cannot drink any water.",
        "Elle ne peut pas boire d'eau.",
    ),
    (finish(clause(WE, VERBS["work"], adverb="never")), "We never work.", "Nous ne travaillons jamais."),
    (finish(clause(PAUL, VERBS["swim"], adverb="no longer")), "Paul no longer swims.", "Paul ne nage plus."),
    (finish(clause(SHE, VERBS["sleep"], adverb="often")), "She often sleeps.", "Elle dort souvent."),
    (
        finish(clause(HE, VERBS["write"], "past", a("letter"), ask=True), "?"),
        "Did he write a letter?",
        "Est-ce qu'il a écrit une lettre ?",
    ),
    (
        finish(clause(the("girl"), VERBS["leave"], "must", ask=True), "?"),
        "Must the girl leave?",
        "Est-ce que la fille doit partir ?",
    ),
    (
        finish(clause(SHE, VERBS["work"], ask=True, front=("where", "où")), "?"),
        "Where does she work?",
        "Où est-ce qu'elle travaille ?",
    ),
    (
        finish(clause(YOU, VERBS["eat"], ask=True, front=("what", "que")), "?"),
        "What do you eat?",
        "Qu'est-ce que tu manges ?",
    ),
    (
        finish(clause(ANNE, VERBS["cry"], "past", ask=True, front=("why", "pourquoi")), "?"),
        "Why did Anne cry?",
        "Pourquoi est-ce qu'Anne a pleuré ?",
    ),
    (
        finish(
            clause(
                HE,
                VERBS["buy"],
                "past",
                ask=True,
                front=the("pear", "which", plural=True)[:2],
                agreement=the("pear", plural=True),
            ),
            "?",
        ),
        "Which pears did he buy?",
        "Quelles poires est-ce qu'il a achetées ?",
    ),
    (
        finish(
            clause(
                YOU,
                VERBS["take"],
                "past",
                ask=True,
                front=the("orange", "how many", plural=True)[:2],
                agreement=the("orange", plural=True),
            ),
            "?",
        ),
        "How many oranges did you take?",
        "Combien d'oranges est-ce que tu as prises ?",
    ),
    (
        finish(clause(ME, VERBS["see"], "present", ("it", ""), clitic="le", agreement=the("cat"))),
        "I see it.",
        "Je le vois.",
    ),
    (
        finish(clause(SHE, VERBS["love"], "present", ("it", ""), clitic="la", negated=True)),
        "She does not love it.",
        "Elle ne l'adore pas.",
    ),
    (
        finish(clause(ME, VERBS["open"], "past", ("them", ""), clitic="les", agreement=the("door", plural=True))),
        "I opened them.",
        "Je les ai ouvertes.",
    ),
    (
        finish(clause(THEY, VERBS["buy"], "future", ("them", ""), clitic="les", negated=True)),
        "They are not going to buy them.",
        "Ils ne vont pas les acheter.",
    ),
    (
        finish(clause(HE, VERBS["give"], "past", ("her", ""), the("book"), clitic="lui")),
        "He gave her the book.",
        "Il lui a donné le livre.",
    ),
    (
        finish(clause(HE, VERBS["send"], "present", a("gift"), ("to the children", "à les enfants"))),
        "He sends a gift to the children.",
        "Il envoie un cadeau aux enfants.",
    ),
    (finish(being(THEY, predicate(ADJECTIVES["happy"], THEY))), "They are happy.", "Ils sont heureux."),
    (
        finish(being(ANNE, predicate(ADJECTIVES["jealous"], ANNE, "too"), tense="past", negated=True)),
        "Anne was not too jealous.",
        "Anne n'était pas trop jalouse.",
    ),
    (
        finish(being(the("pie"), predicate(ADJECTIVES["fresh"], the("pie"), "very"), ask=True), "?"),
        "Is the pie very fresh?",
        "Est-ce que la tarte est très fraîche ?",
    ),
    (
        finish(being(SHE, predicate(ADJECTIVES["active"], SHE), tense="future")),
        "She is going to be active.",
        "Elle va être active.",
    ),
    (
        finish(being(the("cow"), grammar.comparison(ADJECTIVES["big"], the("cow"), "more", the("owl")))),
        "The cow is bigger than the owl.",
        "La vache est plus grande que le hibou.",
    ),
    (
        finish(being(PAUL, grammar.comparison(ADJECTIVES["patient"], PAUL, "less", ANNE))),
        "Paul is less patient than Anne.",
        "Paul est moins patient qu'Anne.",
    ),
    (
        finish(being(WE, grammar.comparison(ADJECTIVES["rich"], WE, "as", the("king")))),
        "We are as rich as the king.",
        "Nous sommes aussi riches que le roi.",
    ),
    (finish(grammar.command(VERBS["open"], the("window")), "!"), "Open the window!", "Ouvre la fenêtre !"),
    (
        finish(grammar.command(VERBS["take"], the("bread"), negated=True), "!"),
        "Do not take the bread!",
        "Ne prends pas le pain !",
    ),
    (
        finish(grammar.command(VERBS["go"], ("to the beach", "à la plage"), together=True), "!"),
        "Let us go to the beach!",
        "Allons à la plage !",
    ),
    (
        finish(grammar.command(VERBS["go"], ("to the school", "à la école")), "!"),
        "Go to the school!",
        "Va à l'école !",
    ),
    (finish(the("beautiful house", "what a")[:2], "!"), "What a beautiful house!", "Quelle belle maison !"),
    (finish(("it is 3:05 p.m.", "il est 15 h 05")), "It is 3:05 p.m.", "Il est 15 h 05."),
    (
        finish(clause(Phrase("the man who", "le homme qui"), VERBS["run"], "progressive")),
        "The man who is running.",
        "L'homme qui court.",
    ),
]


@pytest.fixture(scope="module")
def book() -> Phrasebook:
    return phrasebook()


@pytest.mark.parametrize(("phrase", "english", "french"), PHRASES)
def test_a_phrase_is_right(phrase: tuple[str, str], english: str, french: str) -> None:
    assert (phrase[0], grammar.spell(phrase[1])) == (english, french)


@pytest.mark.parametrize(("pair", "english", "french"), SENTENCES)
def test_a_sentence_is_right(pair: tuple[str, str], english: str, french: str) -> None:
    assert pair == (english, french)


@pytest.mark.parametrize(
    ("verb", "present", "participle"),
    [
        ("eat", "mange manges mange mangeons mangent", "mangé"),
        ("study", "étudie étudies étudie étudions étudient", "étudié"),
        ("buy", "achète achètes achète achetons achètent", "acheté"),
        ("see", "vois vois voit voyons voient", "vu"),
        ("drink", "bois bois boit buvons boivent", "bu"),
        ("go", "vais vas va allons vont", "allé"),
        ("call", "appelle appelles appelle appelons appellent", "appelé"),
    ],
)
def test_a_verb_has_its_forms(verb: str, present: str, participle: str) -> None:
    assert (VERBS[verb].present, VERBS[verb].participle) == (tuple(present.split()), participle)


def test_the_words_are_many_and_of_both_genders() -> None:
    assert len(NOUNS) > 200
    assert len(ADJECTIVES) > 70
    assert len(VERBS) > 70
    assert min(Counter(noun.feminine for noun in NOUNS.values()).values()) > 80


def test_an_adjective_has_four_forms_of_one_word() -> None:
    def forms(adjective: Adjective) -> tuple[str, ...]:
        return adjective[2:6]

    assert forms(ADJECTIVES["jealous"]) == ("jaloux", "jalouse", "jaloux", "jalouses")
    assert forms(ADJECTIVES["brown"]) == ("marron",) * 4
    assert forms(ADJECTIVES["light"]) == ("léger", "légère", "légers", "légères")
    assert forms(ADJECTIVES["beautiful"]) == ("beau", "belle", "beaux", "belles")
    for adjective in ADJECTIVES.values():
        assert all(form[:2] == adjective.masculine[:2] for form in forms(adjective)), adjective
        assert adjective.feminine_plural in (adjective.feminine + "s", "marron")


def test_sizes_and_kinds(book: Phrasebook) -> None:
    assert (len(book.train), len(book.valid), len(book.test)) == (60_000, 1000, 1000)
    shares = Counter(book.kinds[english] for english, _ in book.train)
    assert set(shares) == set(KINDS)
    assert max(shares.values()) < 1.15 * min(shares.values())
    assert {book.kinds[english] for english, _ in book.test} == set(KINDS)


def test_the_sets_are_disjoint_whatever_the_seed(book: Phrasebook) -> None:
    sentences = [english.lower() for part in (book.train, book.valid, book.test) for english, _ in part]
    assert len(set(sentences)) == len(sentences)
    other = phrasebook(2000, seed=1, held_out=100)
    assert not {english.lower() for english, _ in other.train} & {english.lower() for english, _ in book.test}
    for name, part in (("train", other.train), ("valid", other.valid), ("test", other.test)):
        assert {split_of(english) for english, _ in part} == {name}
        assert {split_of(english.upper()) for english, _ in part} == {name}


def test_the_same_arguments_give_the_same_pairs_in_another_process() -> None:
    """Which hashes texts in another way."""
    code = (
        "import sys; from heedful.data.made.phrasebook import phrasebook\n"
        "sys.stdout.buffer.write(repr(phrasebook(300, 5, held_out=20)).encode())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=True,
        timeout=120,
    )
    assert run.stdout.decode() == repr(phrasebook(300, 5, held_out=20))


def test_another_seed_gives_other_pairs() -> None:
    assert phrasebook(300, 6, held_out=20) != phrasebook(300, 5, held_out=20)


def test_an_english_sentence_has_one_french() -> None:
    rng, found = Random(3), dict[str, str]()
    for _ in range(800):
        for draw in KINDS.values():
            english, french = draw(rng)
            assert found.setdefault(english.lower(), french) == french, english


def test_french_elides_contracts_and_spaces(book: Phrasebook) -> None:
    vowel, aspirated = "[aeiouyhàâéèêîôœ]", "(?!hibou|haricot|hamster|harpe|hutte|héros|huit|onz)"
    elision = re.compile(rf"\b(le|la|je|ne|de|que|me|te|se|ma|ta|sa|ce) {aspirated}{vowel}", re.IGNORECASE)
    excessive = re.compile(
        r"\b[ljdmtsnLJDMTSN]'(?![aeiouyhàâéèêîôœAEIOUYHÉÈÊ])|'(hibou|haricot|harpe|hutte|héros|huit|onz)"
    )
    contraction = re.compile(r"\b(de|à) les?\b")
    for english, french in book.train:
        wrong = [rule.search(french) for rule in (elision, excessive, contraction, re.compile("  | $|^ "))]
        assert not any(wrong), (english, french)
        assert not re.search(r"\S[?!]|\s\.", french), french
        assert ("?" in english) == ("?" in french), french
        assert english.endswith(".") == french.endswith("."), french


def test_adjectives_agree_where_they_stand(book: Phrasebook) -> None:
    """An adjective with two genders, beside a noun with an article, is of the gender of both."""
    nouns = {noun.french: noun.feminine for noun in NOUNS.values()}
    gendered = {a.masculine: False for a in ADJECTIVES.values() if a.masculine != a.feminine}
    gendered |= {a.liaison: False for a in ADJECTIVES.values() if a.liaison != a.masculine}
    gendered |= {a.feminine: True for a in ADJECTIVES.values() if a.masculine != a.feminine}
    checked = 0
    for _, french in book.train:
        for article, *words in re.findall(r"\b(le|la|un|une|ce|cet|cette) (\w+) (\w+)", french.lower()):
            for noun, adjective in (words, words[::-1]):
                if noun in nouns and adjective in gendered and adjective != "court":  # "court" is a verb too
                    assert nouns[noun] == gendered[adjective] == (article in ("la", "une", "cette")), french
                    checked += 1
    assert checked > 5000


def test_the_words_of_the_test_set_are_seen_in_training(book: Phrasebook) -> None:
    """Every one is seen; and few sentences hang on a form that is seen fewer than five times."""
    for side in (0, 1):
        seen = Counter(word for pair in book.train for word in re.findall(r"\w+", pair[side].lower()))
        rarest = [min(seen[word] for word in re.findall(r"\w+", pair[side].lower())) for pair in book.test]
        assert min(rarest) >= 1
        assert sum(count < 5 for count in rarest) <= 0.01 * len(rarest)


def test_sentences_are_neither_tiny_nor_long(book: Phrasebook) -> None:
    lengths = [len(english.split()) for english, _ in book.train]
    assert 6 <= sum(lengths) / len(lengths) <= 14
    assert max(lengths) <= 30


def test_a_size_that_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="negative"):
        phrasebook(-1)
    assert phrasebook(0, held_out=0) == Phrasebook([], [], [], {})


def test_a_size_beyond_the_grammar_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.data.made.phrasebook.KINDS", {"one": lambda rng: ("Hello.", "Bonjour.")})
    with pytest.raises(InputError, match="no more sentences of kind 'one'"):
        phrasebook(2, held_out=0)
