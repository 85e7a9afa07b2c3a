"""The words of the phrasebook: nouns, adjectives and verbs of everyday English and French, with their forms.

Regular forms follow a rule; irregular ones stand after a slash. English is American. A noun's tags tell its
kind; an adjective's, and a verb's, say which nouns it goes with.
"""

from typing import NamedTuple


class Noun(NamedTuple):
    """A noun in both languages; `feminine` is the French gender. One tagged "mass" or "one" has no plural."""

    english: str
    english_plural: str
    french: str
    french_plural: str
    feminine: bool
    tags: frozenset[str]

    @property
    def human(self) -> bool:
        return not self.tags.isdisjoint(("person", "family"))


class Adjective(NamedTuple):
    """An adjective. `before`: its French stands before the noun; `liaison`: its masculine before a vowel.

    `comparative` is English, and empty where nothing can be more so.
    """

    english: str
    comparative: str
    masculine: str
    feminine: str
    masculine_plural: str
    feminine_plural: str
    liaison: str
    before: bool
    tags: frozenset[str]


class Verb(NamedTuple):
    """A verb. `present` is French, for I, you, he or she, we, they. `style` tells how the verb may be used:

    action (every tense), event (no progressive), state and taste (present only) and exchange (something to
    somebody) take an object; activity takes none; motion and reflexive take none and build their French past
    with être; timed verbs stand with figures.
    """

    english: str
    third: str
    past: str
    gerund: str
    infinitive: str
    present: tuple[str, ...]
    participle: str
    style: str
    tags: frozenset[str]

    @property
    def with_etre(self) -> bool:
        return self.style in ("motion", "reflexive")


# masculine or feminine, tags: English/plural French/plural, ...; the order of all tables is that of the draws.
# "own" may be somebody's, "handy" is useful, "tale" has a plot, "wild" is not built; "in", "at" fit places.
_NOUNS = """
    m person: boy garçon, man/men homme, child/children enfant, pupil élève, king roi, tourist touriste,
      hero/heroes héros;
    m person own: friend ami, neighbor voisin, guest invité;
    m person job own: doctor médecin, teacher professeur, lawyer avocat;
    m person job: baker boulanger, student étudiant, singer chanteur, farmer fermier, engineer ingénieur,
      painter peintre, actor acteur, waiter serveur, cook cuisinier, writer écrivain;
    f person: girl fille, woman/women femme, queen reine, princess princesse, lady dame;
    f person job: nurse infirmière, actress actrice, waitress serveuse;
    m family: brother frère, uncle oncle, cousin cousin, son fils, nephew neveu;
    m family one: father père, grandfather grand-père; f family: sister sœur, aunt tante, daughter fille, niece nièce;
    f family one: mother mère, grandmother grand-mère;
    m animal own: cat chat, dog chien, horse cheval/chevaux, bird oiseau, rabbit lapin, donkey âne, hamster hamster,
      pig cochon;
    m animal: lion lion, elephant éléphant, bear ours, wolf/wolves loup, owl hibou/hiboux, fox renard, duck canard,
      monkey singe, snake serpent, squirrel écureuil;
    f animal own: cow vache, hen poule, turtle tortue, goat chèvre;
    f animal: mouse/mice souris, frog grenouille, spider araignée, bee abeille;
    m food own: cake gâteau, egg œuf, sandwich sandwich/sandwichs, cookie biscuit;
    f food own: pie tarte, omelet omelette;
    m food fruit: lemon citron, bean haricot, apricot abricot, melon melon, onion oignon, mushroom champignon,
      pineapple ananas;
    f food fruit: apple pomme, orange orange, pear poire, carrot carotte, tomato/tomatoes tomate, strawberry fraise,
      cherry cerise, banana banane, peach pêche, olive olive;
    m mass dish: bread pain, cheese fromage, rice riz, chocolate chocolat, ham jambon, honey miel;
    f mass dish: meat viande, jam confiture, soup soupe, salad salade;
    m mass grocery: butter beurre, sugar sucre, salt sel; f mass grocery: flour farine, oil huile;
    m mass drink: milk lait, coffee café, tea thé, wine vin; f mass drink: water eau, lemonade limonade, beer bière;
    m thing own: gift cadeau, ticket billet, toy jouet, basket panier, stamp timbre, carpet tapis;
    m thing own handy: umbrella parapluie, phone téléphone, computer ordinateur, pen stylo, pencil crayon, tool outil;
    m thing own precious: jewel bijou/bijoux, painting tableau;
    f thing own: clock horloge, doll poupée, candle bougie, blanket couverture, photo photo, flower fleur;
    f thing own handy: key clé, lamp lampe, map carte, ladder échelle, spoon cuillère;
    f thing own precious: watch montre, ring bague; m thing own fragile: glass verre, mirror miroir;
    f thing own fragile: cup tasse, plate assiette, bottle bouteille; m thing own text: newspaper journal/journaux;
    m thing own text tale: book livre, novel roman; f thing own text tale: letter lettre; m text tale own: poem poème;
    f text tale own: story histoire, song chanson;
    m thing own clothing: hat chapeau, coat manteau, glove gant, sweater pull;
    f thing own clothing: shirt chemise, dress robe, shoe chaussure, scarf/scarves écharpe, skirt jupe, jacket veste;
    m thing own opening: bag sac; f thing own opening: box boîte, suitcase valise;
    f opening: door porte, window fenêtre; m furniture own: bed lit, sofa canapé, armchair fauteuil;
    f furniture own: table table, chair chaise; m vehicle own: bicycle vélo, boat bateau, truck camion;
    f vehicle own: car voiture, motorcycle moto; m transport: train train, plane avion, bus bus;
    m thing own instrument: piano piano, violin violon; f thing own instrument: guitar guitare, harp harpe, flute flûte;
    m place built in own: garden jardin, village village; f place built in own: kitchen cuisine, street rue, city ville;
    f place wild in: forest forêt; f place built in building own: house maison, hut hutte;
    m place built at: market marché, airport aéroport; m place built at own: office bureau;
    f place wild at: beach plage; f place built at: station gare, bank banque, bakery boulangerie, pharmacy pharmacie;
    f place built at own: farm ferme;
    m place built in at building: hotel hôtel, hospital hôpital/hôpitaux, castle château, museum musée, theater théâtre;
    f place built in at building: church église, library bibliothèque; f place built in at building own: school école;
    m place built in at: park parc, restaurant restaurant, store magasin; f place built in at: university université;
    m place built: bridge pont; f place wild: river rivière, island île;
    m event: concert concert, wedding mariage, exam examen, game match/matchs;
    f event: meeting réunion, party fête, lesson leçon, exhibition exposition;
    m unit: day jour, month mois, year an, kilometer kilomètre, inhabitant habitant;
    f unit: hour heure, minute minute, week semaine, page page, room chambre
"""

# before or after, tags: English French/feminine/masculine before a vowel, ... After the English: + for a
# comparative in -er, = for none (or none that is regular). A feminine that is given, and is the masculine unchanged,
# makes the adjective invariable.
_ADJECTIVES = """
    before person animal thing place food furniture vehicle opening: small+ petit;
    before thing place animal furniture vehicle opening: big+ grand;
    before person animal thing place tale vehicle: beautiful beau/belle/bel;
    before thing built tale furniture vehicle opening transport: new= nouveau/nouvelle/nouvel;
    before person animal thing built furniture vehicle opening transport: old+ vieux/vieille/vieil;
    before person animal family: young+ jeune; before food text job: good= bon/bonne, bad= mauvais;
    before thing place animal: pretty+ joli; before tale event: long+ long/longue; before animal: fat+ gros/grosse;
    after thing opening furniture vehicle: red= rouge, blue= bleu, green= vert, white= blanc/blanche, black= noir,
      yellow= jaune, pink= rose, purple= violet/violette, gray= gris, brown= marron/marron;
    after animal: white= blanc/blanche, black= noir, gray= gris, brown= marron/marron, dangerous dangereux,
      fast+ rapide;
    after person family: intelligent intelligent, kind+ gentil/gentille, lazy+ paresseux, rich+ riche, poor+ pauvre,
      famous célèbre, sick+ malade, honest honnête, serious sérieux, shy timide, jealous jaloux/jalouse, polite poli,
      patient patient, elegant élégant, French= français, English= anglais, Italian= italien, Spanish= espagnol,
      American= américain;
    after person family animal: sad+ triste, happy+ heureux, tired fatigué, strong+ fort, weak+ faible,
      curious curieux, brave+ courageux, calm+ calme, active actif, thin+ mince;
    after thing furniture vehicle: expensive cher, heavy+ lourd, dirty+ sale, clean+ propre;
    after thing: light+ léger, strange étrange; after handy: useful utile; after precious: precious précieux;
    after clothing: Italian= italien, elegant élégant;
    after fruit: red= rouge, green= vert, yellow= jaune, rotten= pourri;
    after food dish: fresh+ frais/fraîche, delicious délicieux;
    after mass: expensive cher, French= français, Italian= italien; after drink: hot+ chaud, cold+ froid;
    after place: quiet+ tranquille, famous célèbre, clean+ propre, dirty+ sale; after wild: dangerous dangereux;
    after built: noisy+ bruyant, modern moderne;
    after text: interesting intéressant, boring ennuyeux, difficult difficile, easy+ facile, French= français,
      English= anglais, Spanish= espagnol;
    after tale: short+ court, sad+ triste, funny+ drôle, strange étrange;
    after vehicle transport: fast+ rapide, slow+ lent, noisy+ bruyant, modern moderne;
    after vehicle: American= américain; after opening at: open= ouvert, closed= fermé;
    after event: interesting intéressant, boring ennuyeux, important important, short+ court
"""

# By style: English/past/gerund/third person, French with its five present forms and its participle, and tags of its
# objects. French without forms is a regular verb in -er.
_VERBS = {
    "action": """
        eat/ate manger : food dish; drink/drank boire bois bois boit buvons boivent bu : drink;
        buy/bought acheter achète achètes achète achetons achètent acheté : food mass thing furniture vehicle;
        sell/sold vendre vends vends vend vendons vendent vendu : food grocery thing furniture vehicle animal;
        look_for chercher : thing animal person family;
        take/took prendre prends prends prend prenons prennent pris : thing food transport;
        write/wrote écrire écris écris écrit écrivons écrivent écrit : tale; draw/drew dessiner : animal thing building;
        paint peindre peins peins peint peignons peignent peint : animal building opening furniture;
        watch regarder : person family animal transport; listen_to écouter : person family instrument;
        open ouvrir ouvre ouvres ouvre ouvrons ouvrent ouvert : opening; close fermer : opening;
        wash laver : clothing fragile vehicle animal;
        clean nettoyer nettoie nettoies nettoie nettoyons nettoient nettoyé : built furniture vehicle clothing;
        choose/chose choisir choisis choisis choisit choisissons choisissent choisi : thing food vehicle;
        build/built construire construis construis construit construisons construisent construit : building;
        bring/brought apporter : thing food drink dish; carry porter : thing; hide/hid cacher : thing animal;
        prepare préparer : dish food; help aider : person family;
        call appeler appelle appelles appelle appelons appellent appelé : person family; visit visiter : place;
        wait_for attendre attends attends attend attendons attendent attendu : person family transport;
        repair réparer : vehicle instrument furniture; touch toucher : animal thing furniture;
        count compter : animal thing
        """,
    "event": """
        see/saw voir vois vois voit voyons voient vu : person family animal thing place vehicle transport;
        hear/heard entendre entends entends entend entendons entendent entendu : person animal instrument;
        find/found trouver : thing animal vehicle; lose/lost perdre perds perds perd perdons perdent perdu : thing;
        break/broke casser : fragile instrument; forget/forgot/forgetting oublier : thing; meet/met rencontrer : person
        """,
    "state": """
        love adorer : person animal place tale;
        know/knew connaître connais connais connaît connaissons connaissent connu : person family place tale;
        have/had/having/has avoir ai as a avons ont eu : thing animal furniture vehicle;
        want vouloir veux veux veut voulons veulent voulu : thing food drink dish furniture vehicle
        """,
    "taste": """
        like aimer : food mass animal;
        prefer/preferred/preferring préférer préfère préfères préfère préférons préfèrent préféré : food mass;
        hate détester : food mass animal
        """,
    "exchange": """
        give/gave donner : thing food animal; send/sent envoyer envoie envoies envoie envoyons envoient envoyé : thing;
        show/showed montrer : thing animal vehicle; lend/lent prêter : thing vehicle
        """,
    "activity": """
        sing/sang chanter; dance danser; sleep/slept dormir dors dors dort dormons dorment dormi; work travailler;
        run/ran/running courir cours cours court courons courent couru; swim/swam/swimming nager;
        laugh rire ris ris rit rions rient ri; cry pleurer; smile sourire souris souris sourit sourions sourient souri;
        cook cuisiner; travel voyager; play jouer; walk marcher;
        wait attendre attends attends attend attendons attendent attendu; study étudier
        """,
    "motion": """
        arrive arriver; leave/left partir pars pars part partons partent parti;
        come/came venir viens viens vient venons viennent venu; stay rester;
        go_out/went sortir sors sors sort sortons sortent sorti;
        come_back/came revenir reviens reviens revient revenons reviennent revenu; fall/fell tomber;
        go/went aller vais vas va allons vont allé
        """,
    "reflexive": """
        get_up/got/getting se_lever lève lèves lève levons lèvent levé; wake_up/woke se_réveiller;
        go_to_bed/went se_coucher; rest se_reposer; hurry se_dépêcher
        """,
    "timed": """
        cost/cost coûter; pay/paid payer paie paies paie payons paient payé; live habiter;
        begin/began/beginning commencer commence commences commence commençons commencent commencé;
        end finir finis finis finit finissons finissent fini; last durer
        """,
}

_FEMININES = (("e", "e"), ("eux", "euse"), ("er", "ère"), ("if", "ive"), ("en", "enne"), ("", "e"))


def rows(table: str) -> list[str]:
    """Splits a table into rows, which are separated by semicolons."""
    return " ".join(table.split()).split("; ")


def _with_s(word: str) -> str:
    if word.endswith(("s", "x", "ch", "sh", "go")):
        return word + "es"
    return word[:-1] + "ies" if word.endswith("y") and word[-2] not in "aeou" else word + "s"


def _with_ed(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeou":
        return word[:-1] + "ied"
    return word + ("d" if word.endswith("e") else "ed")


def _with_ing(word: str) -> str:
    return (word[:-1] if word.endswith("e") and word[-2] != "e" else word) + "ing"


def _with_er(word: str) -> str:
    if word.endswith("y"):
        return word[:-1] + "ier"
    doubled = word[-1] if word in ("big", "sad", "hot", "fat", "thin") else ""
    return word + doubled + ("r" if word.endswith("e") else "er")


def _french_plural(word: str) -> str:
    if word.endswith(("s", "x")):
        return word
    return word + ("x" if word.endswith(("eau", "eu")) and word != "bleu" else "s")


def _noun(entry: str, tags: list[str]) -> Noun:
    english, french = (forms.split("/") for forms in entry.split())
    english_plural = english[-1] if len(english) > 1 else _with_s(english[0])
    french_plural = french[-1] if len(french) > 1 else _french_plural(french[0])
    return Noun(english[0], english_plural, french[0], french_plural, tags[0] == "f", frozenset(tags[1:]))


def _adjective(entry: str, before: bool, tags: frozenset[str]) -> Adjective:
    english, french = entry.split()
    word = english.rstrip("+=")
    comparative = _with_er(word) if "+" in english else "" if "=" in english else f"more {word}"
    masculine, *others = french.split("/")
    end, feminine_end = next(pair for pair in _FEMININES if masculine.endswith(pair[0]))
    feminine = others[0] if others else masculine[: len(masculine) - len(end)] + feminine_end
    invariable = others == [masculine]
    plurals = (masculine, feminine) if invariable else (_french_plural(masculine), _french_plural(feminine))
    liaison = others[1] if len(others) > 1 else masculine
    return Adjective(word, comparative, masculine, feminine, *plurals, liaison, before, tags)


def _verb(line: str, style: str) -> Verb:
    head, _, tags = line.partition(" : ")
    forms, french, *table = head.split()
    base, *irregular = forms.split("/")
    word, _, particle = base.partition("_")
    past = irregular[0] if irregular else _with_ed(word)
    gerund = irregular[1] if len(irregular) > 1 else _with_ing(word)
    third = irregular[2] if len(irregular) > 2 else _with_s(word)
    word, third, past, gerund = (f"{form} {particle}".replace("_", " ").strip() for form in (word, third, past, gerund))
    infinitive = french.removeprefix("se_")
    if not table:
        stem = infinitive[:-2]
        table = [stem + end for end in ("e", "es", "e", "eons" if stem.endswith("g") else "ons", "ent", "é")]
    present, participle = tuple(table[:5]), table[5]
    return Verb(word, third, past, gerund, infinitive, present, participle, style, frozenset(tags.split()))


def _read_adjectives() -> dict[str, Adjective]:
    """Reads every row; an adjective that occurs in several rows gets the tags of all."""
    entries: dict[str, tuple[bool, set[str]]] = {}
    for row in rows(_ADJECTIVES):
        key, listed = row.split(": ")
        place, *tags = key.split()
        for entry in listed.split(", "):
            entries.setdefault(entry, (place == "before", set()))[1].update(tags)
    read = [_adjective(entry, before, frozenset(tags)) for entry, (before, tags) in entries.items()]
    return {adjective.english: adjective for adjective in read}


def _read_nouns() -> dict[str, Noun]:
    listed = [row.split(": ") for row in rows(_NOUNS)]
    read = [_noun(entry, key.split()) for key, entries in listed for entry in entries.split(", ")]
    return {noun.english: noun for noun in read}


NOUNS = _read_nouns()
ADJECTIVES = _read_adjectives()
VERBS = {verb.english: verb for style, table in _VERBS.items() for verb in (_verb(row, style) for row in rows(table))}
