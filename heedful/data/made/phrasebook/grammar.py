"""The rules of the phrasebook: noun phrases, clauses and spelling, built in English and French side by side.

Conventions that make the French a function of the English: "you" is *tu*; "I", "you", "we" and "they" are
masculine; the English simple past is the *passé composé*, and "was" the *imparfait*; "his" and "her" are both
*son*; questions use *est-ce que*; a plain space stands before "?" and "!"; apostrophes are straight.
"""

import re
from typing import Literal, NamedTuple

from heedful.data.made.phrasebook.words import Adjective, Noun, Verb, rows

Tense = Literal["present", "progressive", "past", "future", "can", "must", "want"]


class Pair(NamedTuple):
    """The same words in both languages."""

    english: str
    french: str


class Phrase(NamedTuple):
    """A subject or object in both languages, with the features that other words agree with.

    `person` indexes a verb's five forms: 0 I, 1 you, 2 he or she, 3 we, 4 they.
    """

    english: str
    french: str
    person: int = 2
    feminine: bool = False
    human: bool = False

    @property
    def plural(self) -> bool:
        return self.person > 2

    @property
    def object_pronouns(self) -> Pair:
        """The pronouns that stand for this phrase as a direct object."""
        if self.plural:
            return Pair("them", "les")
        return Pair(("her" if self.feminine else "him") if self.human else "it", "la" if self.feminine else "le")

    @property
    def subject_pronouns(self) -> Pair:
        """The pronouns that stand for this phrase as a subject."""
        french = "elle" if self.feminine else "il"
        if self.plural:
            return Pair("they", french + "s")
        return Pair(("she" if self.feminine else "he") if self.human else "it", french)


PRONOUNS = {
    "I": Phrase("I", "je", 0, human=True),
    "you": Phrase("you", "tu", 1, human=True),
    "he": Phrase("he", "il", 2, human=True),
    "she": Phrase("she", "elle", 2, feminine=True, human=True),
    "we": Phrase("we", "nous", 3, human=True),
    "they": Phrase("they", "ils", 4, human=True),
}

# Masculine and feminine singular, masculine and feminine plural; empty if there is no such form.
_DETERMINERS = """
    the: le/la/les/les; a: un/une//; some: de le/de la/des/des; any: de le/de la/des/des; this: ce/cette//;
    these: //ces/ces; my: mon/ma/mes/mes; your: ton/ta/tes/tes; his: son/sa/ses/ses; her: son/sa/ses/ses;
    our: notre/notre/nos/nos; their: leur/leur/leurs/leurs; every: chaque/chaque//; which: quel/quelle/quels/quelles;
    what: //quels/quelles; what a: quel/quelle//; all the: //tous les/toutes les; several: //plusieurs/plusieurs;
    a few: //quelques/quelques; many: //beaucoup de/beaucoup de; too many: //trop de/trop de;
    how many: //combien de/combien de
"""
DETERMINERS = {name: tuple(forms.split("/")) for name, forms in (row.split(": ") for row in rows(_DETERMINERS))}

_TO_BE = ("am", "are", "is", "are", "are")
_WAS = ("was", "were", "was", "were", "were")
_ETRE = ("suis", "es", "est", "sommes", "sont")
_ETAIT = ("étais", "étais", "était", "étions", "étaient")
_AVOIR = ("ai", "as", "a", "avons", "ont")
_REFLEXIVE = ("me", "te", "se", "nous", "se")
_BEFORE_INFINITIVE = {
    "future": ("vais", "vas", "va", "allons", "vont"),
    "can": ("peux", "peux", "peut", "pouvons", "peuvent"),
    "must": ("dois", "dois", "doit", "devons", "doivent"),
    "want": ("veux", "veux", "veut", "voulons", "veulent"),
}
_ADVERBS = {"often": "souvent", "always": "toujours", "never": "jamais", "no longer": "plus"}

# An h is mute, unless the word is one of the few with an aspirated one; "huit" and "onze" never elide.
_VOWEL = r"(?!hibou|haricot|hamster|harpe|hutte|héros|huit|onz)[aeiouyhàâéèêîôœ]"
_ELISION = re.compile(rf"\b(le|la|je|ne|de|que|me|te|se) (?={_VOWEL})", re.IGNORECASE)
_LIAISON = re.compile(rf"\b(ma|ta|sa|ce) (?={_VOWEL})", re.IGNORECASE)
_CONTRACTION = re.compile(r"\b(?:de les?|à les?)(?= )")
_VOWEL_START = re.compile(_VOWEL, re.IGNORECASE)
_LIAISONS = {"ma": "mon", "ta": "ton", "sa": "son", "ce": "cet"}
_CONTRACTIONS = {"de le": "du", "de les": "des", "à le": "au", "à les": "aux"}


def spell(french: str) -> str:
    """Apply elision ("l'ami"), the forms before a vowel ("mon amie", "cet ami") and contraction ("du")."""
    french = _ELISION.sub(lambda match: match[1][:-1] + "'", french)
    french = _LIAISON.sub(lambda match: _LIAISONS[match[1]] + " ", french)
    return _CONTRACTION.sub(lambda match: _CONTRACTIONS[match[0]], french)


def finish(pair: tuple[str, str], mark: Literal[".", "?", "!"] = ".") -> Pair:
    """Make a sentence of a clause: spelling, first letters in upper case, and the mark at the end."""
    english, french = pair[0], spell(pair[1])
    # One period ends both "p.m." and the sentence.
    english = english.removesuffix(mark) + mark
    french += mark if mark == "." else f" {mark}"
    return Pair(english[0].upper() + english[1:], french[0].upper() + french[1:])


def join(*pairs: tuple[str, str]) -> Pair:
    """Put pairs side by side in both languages; empty ones leave no space."""
    return Pair(" ".join(pair[0] for pair in pairs if pair[0]), " ".join(pair[1] for pair in pairs if pair[1]))


def indefinite(words: str) -> str:
    """Put "a" or "an" before English words."""
    vowel = words.startswith(("a", "e", "i", "o", "u", "hon", "A", "E", "I")) and not words.startswith(("uni", "use"))
    return f"an {words}" if vowel else f"a {words}"


def agreed(adjective: Adjective, feminine: bool, plural: bool) -> str:
    """The French form of an adjective that agrees in gender and number."""
    if feminine:
        return adjective.feminine_plural if plural else adjective.feminine
    return adjective.masculine_plural if plural else adjective.masculine


def agreed_participle(participle: str, feminine: bool, plural: bool) -> str:
    """A past participle that agrees: "vu", "vue", "vus", "vues"; "pris" keeps one s."""
    ending = participle + ("e" if feminine else "")
    return ending + ("s" if plural and not ending.endswith("s") else "")


def described(noun: Noun, adjectives: tuple[Adjective, ...] = (), *, plural: bool = False) -> Pair:
    """A noun with its adjectives, each on its side of the noun, without a determiner."""
    english = " ".join([adjective.english for adjective in adjectives])
    english = f"{english} {noun.english_plural if plural else noun.english}".lstrip()
    french = noun.french_plural if plural else noun.french
    for adjective in adjectives:
        form = agreed(adjective, noun.feminine, plural)
        if not adjective.before:
            french = f"{french} {form}"
        elif not (noun.feminine or plural) and _VOWEL_START.match(noun.french):
            french = f"{adjective.liaison} {french}"
        else:
            french = f"{form} {french}"
    return Pair(english, french)


def about(noun: Noun, english: str, french: str, *, plural: bool = False) -> Phrase:
    """Makes a phrase of words for a noun, with the noun's features."""
    return Phrase(english, french, 4 if plural else 2, noun.feminine, noun.human)


def noun_phrase(
    determiner: str, noun: Noun, *adjectives: Adjective, plural: bool = False, negated: bool = False
) -> Phrase:
    """A noun phrase such as ("the", apple, red), with at most one adjective on each side of the French noun.

    `negated`: the phrase is the object of a verb under negation, where the indefinite article becomes *de*. A
    determiner of `DETERMINERS` must have a form for the number that is asked for.
    """
    english, french = described(noun, adjectives, plural=plural)
    article = DETERMINERS[determiner][2 * plural + noun.feminine]
    before = any(adjective.before for adjective in adjectives)
    if determiner in ("a", "some", "any") and (negated or (article == "des" and before)):
        article = "de"
    english = f"{determiner[:-1]}{indefinite(english)}" if determiner in ("a", "what a") else f"{determiner} {english}"
    return about(noun, english, f"{article} {french}", plural=plural)


def generic(noun: Noun, *adjectives: Adjective) -> Phrase:
    """All of a kind: "red apples", "les pommes rouges"; "coffee", "le café"."""
    plural = "mass" not in noun.tags
    english, french = described(noun, adjectives, plural=plural)
    article = DETERMINERS["the"][2 * plural + noun.feminine]
    return about(noun, english, f"{article} {french}", plural=plural)


def possession(owner: Phrase, noun: Noun, *adjectives: Adjective, plural: bool = False) -> Phrase:
    """A possession: "my brother's red car", "la voiture rouge de mon frère"."""
    english, french = described(noun, adjectives, plural=plural)
    mark = "'" if owner.plural and owner.english.endswith("s") else "'s"
    article = DETERMINERS["the"][2 * plural + noun.feminine]
    whole = f"{article} {french} de {owner.french}"
    return about(noun, f"{owner.english}{mark} {english}", whole, plural=plural)


def clause(
    subject: Phrase,
    verb: Verb,
    tense: Tense = "present",
    *complements: tuple[str, str] | Phrase,
    negated: bool = False,
    ask: bool = False,
    front: tuple[str, str] = ("", ""),
    adverb: str = "",
    clitic: str = "",
    agreement: Phrase | None = None,
) -> Pair:
    """A clause: subject, verb and complements, in order.

    `front`: words before a question ("why", "which apples"). `adverb`: often, always, never or no longer, in
    the present or past. `clitic`: the French object pronoun, which stands before its verb (its English is a
    complement). `agreement`: a direct object before the verb, so that the participle agrees with it.
    """
    person, negating = subject.person, negated or adverb in ("never", "no longer")
    base, third = verb.english, person == 2
    auxiliary, main, statement = "does" if third else "do", base, verb.third if third else base
    finite, remainder = verb.present[person], ""
    clitic = _REFLEXIVE[person] if verb.style == "reflexive" else clitic
    first, second = clitic, ""
    if tense == "past":
        auxiliary, statement = "did", verb.past
        owner = subject if verb.with_etre else agreement
        finite, remainder = (_ETRE if verb.with_etre else _AVOIR)[person], verb.participle
        if owner:
            remainder = agreed_participle(remainder, owner.feminine, owner.plural)
    elif tense == "progressive":
        auxiliary, main, statement = _TO_BE[person], verb.gerund, ""
    elif tense != "present":
        first, second = "", clitic
        finite, remainder = _BEFORE_INFINITIVE[tense][person], verb.infinitive
        if tense == "want":
            main, statement = f"want to {base}", f"{'wants' if third else 'want'} to {base}"
        elif tense == "future":
            auxiliary, main, statement = _TO_BE[person], f"going to {base}", ""
        else:
            auxiliary, statement = tense, ""
    statement = f"{adverb} {statement}".lstrip() if statement else f"{auxiliary} {main}"
    english = _english_clause(subject.english, auxiliary, main, statement, negated, ask)
    middle = "pas" if negated else _ADVERBS.get(adverb, "")
    words = (subject.french, "ne" if negating else "", first, finite, middle, second, remainder)
    return _whole(front, ask, Pair(english, " ".join(filter(None, words))), complements)


def being(
    subject: Phrase,
    *complements: tuple[str, str] | Phrase,
    tense: Literal["present", "past", "future"] = "present",
    negated: bool = False,
    ask: bool = False,
    front: tuple[str, str] = ("", ""),
) -> Pair:
    """A clause with "to be": "the apple is red", "was he tired", "they are going to be rich"."""
    person = subject.person
    auxiliary = (_WAS if tense == "past" else _TO_BE)[person]
    main = "going to be" if tense == "future" else ""
    english = _english_clause(subject.english, auxiliary, main, f"{auxiliary} {main}".rstrip(), negated, ask)
    finite = {"present": _ETRE, "past": _ETAIT, "future": _BEFORE_INFINITIVE["future"]}[tense][person]
    words = (subject.french, "ne" if negated else "", finite, "pas" if negated else "", "être" if main else "")
    return _whole(front, ask, Pair(english, " ".join(filter(None, words))), complements)


def _english_clause(subject: str, auxiliary: str, main: str, statement: str, negated: bool, ask: bool) -> str:
    if ask:
        words = (auxiliary, subject, "not" if negated else "", main)
    elif negated:
        words = (subject, "cannot" if auxiliary == "can" else f"{auxiliary} not", main, "")
    else:
        words = (subject, statement, "", "")
    return " ".join(filter(None, words))


def _whole(front: tuple[str, str], ask: bool, core: Pair, complements: tuple[tuple[str, str] | Phrase, ...]) -> Pair:
    asked = Pair(core.english, f"est-ce que {core.french}") if ask else core
    return join(front, asked, *((complement[0], complement[1]) for complement in complements))


def command(verb: Verb, *complements: tuple[str, str] | Phrase, together: bool = False, negated: bool = False) -> Pair:
    """An order to "you", or to "us" if `together` ("let us"), without a mark at the end."""
    form = verb.present[3] if together else verb.present[1]
    if not together and form.endswith(("es", "vas")):
        form = form[:-1]
    english = ("let us not " if together else "do not ") if negated else ("let us " if together else "")
    core = Pair(english + verb.english, f"ne {form} pas" if negated else form)
    return _whole(("", ""), False, core, complements)


def predicate(adjective: Adjective, subject: Phrase, degree: str = "") -> Pair:
    """An adjective after "to be", agreed with the subject; `degree`: "", "very" or "too"."""
    form = agreed(adjective, subject.feminine, subject.plural)
    return join((degree, {"": "", "very": "très", "too": "trop"}[degree]), (adjective.english, form))


def comparison(
    adjective: Adjective, subject: Phrase, degree: Literal["more", "less", "as"], other: tuple[str, str] | Phrase
) -> Pair:
    """A comparison after "to be": "bigger than the dog", "as rich as Paul"."""
    form = agreed(adjective, subject.feminine, subject.plural)
    if degree == "as":
        return Pair(f"as {adjective.english} as {other[0]}", f"aussi {form} que {other[1]}")
    english = adjective.comparative if degree == "more" else f"less {adjective.english}"
    return Pair(f"{english} than {other[0]}", f"{'plus' if degree == 'more' else 'moins'} {form} que {other[1]}")


def superlative(noun: Noun, adjective: Adjective) -> Phrase:
    """A superlative: "the biggest house", "la plus grande maison"; "la maison la plus chère"."""
    article = DETERMINERS["the"][noun.feminine]
    short = not adjective.comparative.startswith("more ")
    english = f"{adjective.comparative[:-1]}st" if short else f"most {adjective.english}"
    if adjective.before:
        french = f"{article} plus {described(noun, (adjective,)).french}"
    else:
        french = f"{article} {noun.french} {article} plus {agreed(adjective, noun.feminine, False)}"
    return Phrase(f"the {english} {noun.english}", french, 2, noun.feminine)
