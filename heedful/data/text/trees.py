"""Constituency trees in brackets: reads and simplifies them, and converts them to a line of tokens and back.

"(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)))" is in Penn's format, and is linearised as "(S (NP XX XX )NP (VP XX )VP
)S" (Vinyals et al. 2015, section 2.1): a token for each bracket with its label, and one that stands for any word. Tags
of words are left out.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from heedful.data.lines import read_lines
from heedful.data.parts import MOST, Parts, held_out, learnt_too, named_part
from heedful.data.tokenizer import SPECIALS, UNK
from heedful.errors import InputError, MissingError

LEAF = "XX"
ROOTS = ("", "TOP", "ROOT", "S1")  # labels around a sentence that carry no information
DEEPEST = 200  # nested brackets; more are a broken file, not a sentence
SPACE = re.compile("[ \t\r\n]+")  # others, such as thin spaces, may be part of a word
ESCAPES = {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-", "{": "-LCB-", "}": "-RCB-"}
MEANT = {escape: bracket for bracket, escape in ESCAPES.items()}
FIX = "write a tree as (S (NP (DT the) (NN cat)) (VP (VBZ sleeps)))"


class Leaf(NamedTuple):
    """A word, unescaped: "(" instead of "-LRB-"."""

    tag: str
    word: str

    def __str__(self) -> str:
        return f"({self.tag} {re.sub(r'[][(){}]', lambda found: ESCAPES[found[0]], self.word)})"


@dataclass(frozen=True)
class Tree:
    """A constituent: at least one word or constituent under a label."""

    label: str
    children: tuple["Tree | Leaf", ...]

    def __str__(self) -> str:
        return f"({self.label} {' '.join(map(str, self.children))})"

    def leaves(self) -> Iterator[Leaf]:
        for child in self.children:
            if isinstance(child, Leaf):
                yield child
            else:
                yield from child.leaves()

    def words(self) -> list[str]:
        return [leaf.word for leaf in self.leaves()]

    def constituents(self, start: int = 0) -> Iterator[tuple[str, int, int]]:
        """Yields (label, start, end) of each constituent, this one first: it spans the leaves from `start` to before
        `end`."""
        below, end = list[tuple[str, int, int]](), start
        for child in self.children:
            if isinstance(child, Leaf):
                end += 1
            else:
                found = list(child.constituents(end))
                below, end = below + found, found[0][2]
        yield self.label, start, end
        yield from below


Treebank = Parts[list[Tree]]  # for a parser


def read_treebank(path: str | Path) -> Treebank:
    """Reads a file of simplified trees, or a folder whose files or folders are named train*, valid* (val, dev) and
    test*.

    Without validation data, a tenth of the training trees is held out, by a hash of their words. Raises InputError or
    MissingError.
    """
    path = Path(path)
    files = _files(path) if path.is_dir() else [path]
    parts: dict[str, list[Tree]] = {"train": [], "valid": []}
    for file in files:
        part = named_part(_top(file, path)) if path.is_dir() else "train"
        if part in parts:
            parts[part] += read_trees(file)
    if not parts["train"]:
        raise MissingError("no training trees", where=str(path), fix="add a file train.tree, or a folder train")
    train, valid, notes = held_out(parts["train"], parts["valid"], _sentence, noun="tree", where=path, most=MOST)
    tests = read_test_trees(path) if path.is_dir() else {}
    notes += learnt_too(train, {"valid": valid, **tests}, _sentence)
    return Treebank(train, valid, tests, str(path), tuple(files), notes)


def read_test_trees(path: str | Path) -> dict[str, list[Tree]]:
    """Reads the trees of a file, or of the files and folders named test* in a folder, by name. Raises InputError or
    MissingError."""
    path = Path(path)
    if not path.is_dir():
        return {path.name: read_trees(path)}
    tests: dict[str, list[Tree]] = {}
    for file in _files(path):
        top = _top(file, path)
        if named_part(top) == "test":
            tests.setdefault(top.split(".")[0], []).extend(read_trees(file))
    return tests


def _files(folder: Path) -> list[Path]:
    """Returns the files in a folder, at any depth, that are named like a part, or whose topmost folder is."""
    return [file for file in sorted(folder.rglob("[!.]*")) if file.is_file() and named_part(_top(file, folder))]


def _sentence(tree: Tree) -> str:
    return " ".join(tree.words())


def _top(file: Path, folder: Path) -> str:
    return file.relative_to(folder).parts[0]


def read_trees(path: str | Path) -> list[Tree]:
    """Reads the trees of a file, simplified: each on a line of its own, or over several. Raises InputError or
    MissingError."""
    trees = [kept for tree in parse_trees(read_lines(path), str(path)) if (kept := plain(tree)) is not None]
    if not trees:
        raise InputError("no tree with a word", where=str(path), fix=FIX)
    return trees


def parse_trees(lines: Iterable[str], where: str) -> Iterator[Tree]:
    """Yields the trees as they are written. Raises InputError with the number of the line."""
    open_: list[_Open] = []
    for number, line in enumerate(lines, 1):
        here = f"{where}:{number}"
        for token in re.findall(r"[()]|[^ \t\r\n()]+", line):
            if token == "(":
                if open_ and open_[-1].label is None:
                    open_[-1].label = ""
                if open_ and open_[-1].word is not None:
                    raise InputError(f"a bracket after the word {open_[-1].word!r}", where=here, fix=FIX)
                if len(open_) == DEEPEST:
                    raise InputError(f"more than {DEEPEST} brackets within each other", where=here, fix=FIX)
                open_.append(_Open(here))
            elif not open_:
                what = "a bracket closes that none opens" if token == ")" else f"{token!r} stands outside of brackets"
                raise InputError(what, where=here, fix=FIX)
            elif token == ")":
                made = open_.pop().close(here)
                if open_:
                    open_[-1].children.append(made)
                else:
                    yield made if isinstance(made, Tree) else Tree("TOP", (made,))
            else:
                open_[-1].add(token, here)
    if open_:
        raise InputError("a bracket opens that none closes", where=open_[0].where, fix=FIX)


@dataclass
class _Open:
    """An open bracket."""

    where: str
    label: str | None = None
    word: str | None = None
    children: list[Tree | Leaf] = field(default_factory=list)

    def add(self, token: str, where: str) -> None:
        if self.label is None:
            self.label = token
        elif self.word is None and not self.children:
            self.word = token
        else:
            raise InputError(f"{token!r} is not the only word of its bracket", where=where, fix=FIX)

    def close(self, where: str) -> Tree | Leaf:
        if self.word is not None:
            return Leaf(self.label or "", unescaped(self.word))
        if not self.children:
            raise InputError("an empty bracket", where=where, fix=FIX)
        return Tree(self.label or "", tuple(self.children))


def plain(tree: Tree) -> Tree | None:
    """Removes empty elements and constituents that become empty, functions ("NP-SBJ-1" becomes NP), and outer brackets
    without information. Returns None if no word is left."""
    kept = _plain(tree)
    while kept is not None and kept.label in ROOTS:
        first, *others = kept.children
        if others or isinstance(first, Leaf):
            return Tree("TOP", kept.children)
        kept = first
    return kept


def _plain(tree: Tree) -> Tree | None:
    children: list[Tree | Leaf] = []
    for child in tree.children:
        kept = (None if child.tag == "-NONE-" else child) if isinstance(child, Leaf) else _plain(child)
        if kept is not None:
            children.append(kept)
    return Tree(re.sub(r"(?<=.)[-=].*", "", tree.label), tuple(children)) if children else None


def words_in(text: str) -> list[str]:
    """Splits a sentence that is already tokenised, as in a treebank, into words."""
    return [unescaped(word) for word in SPACE.split(text) if word]


def unescaped(word: str) -> str:
    return re.sub("-[LR][RSC]B-", lambda found: MEANT[found[0]], word)


def linearise(tree: Tree) -> Iterator[str]:
    yield f"({tree.label}"
    for child in tree.children:
        if isinstance(child, Leaf):
            yield LEAF
        else:
            yield from linearise(child)
    yield f"){tree.label}"


def tree_of(tokens: Iterable[str], leaves: Sequence[Leaf]) -> Tree:
    """Returns the tree that a line of tokens describes, with these leaves. Raises InputError if it is not one tree, or
    has other leaves."""
    left = iter(leaves)
    above: list[tuple[str, list[Tree | Leaf]]] = [("", [])]
    for token in tokens:
        if token == LEAF:
            above[-1][1].append(next(left, Leaf("", "")))
        elif token.startswith("("):
            above.append((token[1:], []))
        else:
            label, children = above.pop()
            if not above or not children or token != f"){label}":
                break
            above[-1][1].append(Tree(label, tuple(children)))
    found = above[0][1] if len(above) == 1 else []
    if len(found) != 1 or not isinstance(found[0], Tree) or list(found[0].leaves()) != list(leaves):
        raise InputError("tokens that are not one tree of this sentence")
    return found[0]


def right_branching(leaves: Sequence[Leaf], root: str, label: str) -> Tree:
    """Returns the right-branching tree: each constituent has a word and the constituent of the rest. A baseline for
    parsers."""
    found: tuple[Tree | Leaf, ...] = (leaves[-1],)
    for leaf in reversed(leaves[:-1]):
        found = (leaf, Tree(label, found))
    return Tree(root, found)


class BracketVocabulary:
    """The closed vocabulary of linearised trees: the usual control tokens, the leaf, and two tokens for each label."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)
        opening, closing = (f"({label}" for label in labels), (f"){label}" for label in labels)
        self.names = [*SPECIALS, LEAF, *opening, *closing]
        self.ids = {name: index for index, name in enumerate(self.names)}

    @property
    def size(self) -> int:
        return len(self.names)

    def encode(self, tree: Tree) -> list[int]:
        """Returns the ids of a tree; an unknown label becomes the unknown token."""
        return [self.ids.get(token, UNK) for token in linearise(tree)]

    def decode(self, ids: Iterable[int], leaves: Sequence[Leaf]) -> Tree:
        """Returns the tree of these ids. Raises InputError if they are not one tree of these leaves."""
        return tree_of((self.names[index] for index in ids), leaves)
