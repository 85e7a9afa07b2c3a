"""What classifiers are measured against: the most frequent answer, and bags of words.

    pip install scikit-learn
    python -m benchmarks.baselines --data PATH/TO/data

The folder holds sst, trec, sick, mrpc, copa, mctest, ud_english_atis, xquad, or some of them, as
`benchmarks/datasets.py` describes each. Words and pairs of neighbours, weighted by TF-IDF, go into logistic regression
(ridge regression for scores) whose regularisation is chosen by cross-validation on the training examples. Of two texts
it sees each, what they share, and what only one has; of two choices, in what they differ: their words, and each word of
the text beside each of theirs. For MCTest it is the baseline of its authors, which learns nothing: a window over the
story. A word is tagged as it most often was; a question is answered with the sentence that shares most with it, by the
same weights, or with the first.
"""

import argparse
import math
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.datasets import FOLDS, copa, mctest, mrpc, sick, sst2, trec, write_by_article
from heedful.data.text.labelled import Example, Labelled
from heedful.data.text.noise import sentences_of
from heedful.data.text.questions import Question, read_questions
from heedful.data.text.tagged import Sentence, read_tagged
from heedful.errors import HeedError, MissingError
from heedful.metrics.labels import accuracy, pearson, spearman
from heedful.tasks.answer.use import word_f1

WORD, MARK = r"[\w']+", r"[^\w\s]"
STRENGTHS = [10 ** (power / 2) for power in range(-2, 5)]  # 0.1 to 100


class Row(NamedTuple):
    """A line of the table: shares of right answers, or correlations."""

    task: str
    examples: int
    measure: str
    majority: float
    words: float

    def __str__(self) -> str:
        majority, words = f"{self.majority:.3f}", f"{self.words:.3f}"
        if self.measure == "accuracy":
            error = math.sqrt(self.words * (1 - self.words) / self.examples)
            majority, words = f"{self.majority:.1%}", f"{self.words:.1%} ± {100 * error:.1f}"
        return f"| {self.task} | {self.examples:,} | {self.measure} | {majority} | {words} |"


def table(data: Path) -> Iterator[Row]:
    """A row for each set that is in the folder `data`."""
    if (data / "sst").is_dir():
        yield _right(sst2(data / "sst"), of_words)
    if (data / "trec").is_dir():
        yield _right(trec(data / "trec"), of_words)
    if (data / "sick").is_dir():
        yield _right(sick(data / "sick", "label"), of_words)
        related = sick(data / "sick", "score")
        found, right = of_words(related), [one.score for one in related.tests["test"]]
        for name, measure in {"Pearson": pearson, "Spearman": spearman}.items():
            yield Row("SICK, relatedness", len(right), name, 0.0, measure(found, right))
    if (data / "mrpc").is_dir():
        yield _right(mrpc(data / "mrpc"), of_words)
    if (data / "copa").is_dir():
        each = [_right(copa(data / "copa", fold=fold), of_words) for fold in range(FOLDS)]
        majority, words = fmean(row.majority for row in each), fmean(row.words for row in each)  # of equal folds
        yield Row("COPA, balanced", sum(row.examples for row in each), "accuracy", majority, words)
    if (data / "mctest").is_dir():
        yield _right(mctest(data / "mctest", 160), windows)
        yield _right(mctest(data / "mctest", 500), windows)
    if (data / "ud_english_atis").is_dir():
        tagged = read_tagged(data / "ud_english_atis")
        yield of_tags(tagged.train, next(iter(tagged.tests.values())))
    if (data / "xquad").is_dir():
        with tempfile.TemporaryDirectory() as folder:
            write_by_article(data / "xquad", Path(folder))
            asked = read_questions(folder)
        yield of_questions(asked.train, asked.tests["test"])


def _right(data: Labelled, answers: Callable[[Labelled], Sequence[Any]]) -> Row:
    train, test = ([right_answer(one, data) for one in part] for part in (data.train, data.tests["test"]))
    ((most, _),) = Counter(train).most_common(1)
    return Row(data.name, len(test), "accuracy", accuracy([most] * len(test), test), accuracy(answers(data), test))


def right_answer(example: Example, data: Labelled) -> Any:
    match data.answer:
        case "label":
            return example.label
        case "score":
            return example.score
        case _:
            return example.choice


def of_words(data: Labelled) -> list[Any]:
    """The answers to the test of a regression on bags of words, learnt from the training examples."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.model_selection import GridSearchCV, KFold

    cut = KFold(5, shuffle=True, random_state=0)
    if data.answer == "score":
        search = GridSearchCV(Ridge(), {"alpha": STRENGTHS}, cv=cut)
    else:  # what favours neither choice says nothing
        linear = LogisticRegression(max_iter=2000, fit_intercept=data.answer == "label")
        search = GridSearchCV(linear, {"C": STRENGTHS}, cv=cut)
    read = of_choices(data.train) if data.answer == "choice" else of_texts(data.train)
    search.fit(read(data.train), [right_answer(one, data) for one in data.train])
    return search.predict(read(data.tests["test"])).tolist()


def of_texts(known: Sequence[Example]) -> Callable[[Sequence[Example]], Any]:
    """What makes a matrix of examples, a row each, in the words of those that are known."""
    from scipy.sparse import csr_matrix, hstack
    from sklearn.feature_extraction.text import TfidfVectorizer

    bags = TfidfVectorizer(token_pattern=f"{WORD}|{MARK}", ngram_range=(1, 2), sublinear_tf=True)
    bags.fit([text for one in known for text in (one.text, one.pair) if text])

    def read(examples: Sequence[Example]) -> Any:
        first = bags.transform([one.text for one in examples])
        if not examples[0].pair:
            return first
        second = bags.transform([one.pair for one in examples])
        shared = first.minimum(second)
        sizes = [_overlap(one) for one in examples]
        return hstack([first, second, shared, first - shared, second - shared, csr_matrix(sizes)]).tocsr()

    return read


def _overlap(example: Example) -> tuple[float, float, float]:
    """The share of the two texts' words that both have, and of each one's that the other has too."""
    first, second = set(words(example.text)), set(words(example.pair))
    both = len(first & second)
    return both / len(first | second), both / len(first), both / len(second)


def of_choices(known: Sequence[Example]) -> Callable[[Sequence[Example]], Any]:
    """As `of_texts`, of the second choice without the first."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    def bag(item: tuple[Example, int]) -> list[str]:
        example, index = item
        own = words(example.choices[index])
        return [*own, *(f"{word} {other}" for word in words(example.text) for other in own)]

    bags = TfidfVectorizer(analyzer=bag)
    bags.fit([(one, index) for one in known for index in (0, 1)])

    def read(examples: Sequence[Example]) -> Any:
        first, second = (bags.transform([(one, index) for one in examples]) for index in (0, 1))
        return second - first

    return read


def windows(data: Labelled) -> list[int]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return [window(one, ENGLISH_STOP_WORDS) for one in data.tests["test"]]


def window(example: Example, stop: Set[str]) -> int:
    """The choice whose words, with the question's, are densest somewhere in the story, rare words counting more, and
    stand closest to the question's (Richardson et al. 2013, algorithms 1 and 2)."""
    story = words(example.text)
    count = Counter(story)
    question = set(words(example.pair))
    scores = []
    for choice in example.choices:
        own = set(words(choice))
        wanted = own | question
        worth = [math.log(1 + 1 / count[word]) if word in wanted else 0.0 for word in story]
        densest = max(sum(worth[i : i + len(wanted)]) for i in range(len(story)))
        asked = [i for i, word in enumerate(story) if word in question - stop]
        said = [i for i, word in enumerate(story) if word in own - question - stop]
        nearest = min((abs(i - j) for i in asked for j in said), default=len(story) - 1)
        scores.append(densest - nearest / (len(story) - 1))
    return scores.index(max(scores))


def of_tags(known: Sequence[Sentence], asked: Sequence[Sentence]) -> Row:
    counts: dict[str, Counter[str]] = {}
    for one in known:
        for word, label in zip(one.words, one.labels, strict=True):
            counts.setdefault(word, Counter())[label] += 1
    most = sum(counts.values(), Counter[str]()).most_common(1)[0][0]
    usual = {word: own.most_common(1)[0][0] for word, own in counts.items()}
    right = [label for one in asked for label in one.labels]
    found = [usual.get(word, most) for one in asked for word in one.words]
    return Row(
        "ATIS, parts of speech", len(right), "accuracy", accuracy([most] * len(right), right), accuracy(found, right)
    )


def of_questions(known: Sequence[Question], asked: Sequence[Question]) -> Row:
    from sklearn.feature_extraction.text import TfidfVectorizer

    bags = TfidfVectorizer(token_pattern=WORD).fit([one.context for one in known])
    first: list[float] = []
    nearest: list[float] = []
    for one in asked:
        told = sentences_of(one.context)
        alike = (bags.transform([one.question]) @ bags.transform(told).T).toarray()[0]
        for scores, said in ((first, told[0]), (nearest, told[int(alike.argmax())])):
            scores.append(max(word_f1(said, answer.text) for answer in one.answers))
    return Row("XQuAD, English", len(asked), "F1", fmean(first), fmean(nearest))


def words(text: str) -> list[str]:
    """Without punctuation."""
    return re.findall(WORD, text.lower())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    data = parser.parse_args().data
    try:
        import sklearn
    except ImportError:
        raise MissingError("scikit-learn is not installed", fix="pip install scikit-learn") from None
    print(f"scikit-learn {sklearn.__version__}\n")
    print("| task | examples | measure | most frequent answer | words |\n|---|---|---|---|---|")
    for row in table(data):
        print(row, flush=True)


if __name__ == "__main__":
    try:
        main()
    except HeedError as error:
        raise SystemExit(f"error: {error}; {error.fix}" if error.fix else f"error: {error}") from None
