"""A tiny training of every task, on generated data, and the calls that are made to its model."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args
from unittest import mock

import numpy
import torch

from heedful.data.episodes.environments import random_episodes
from heedful.data.episodes.episode import episode
from heedful.data.images.boxes import BoxedImages, BoxedPart, Thing
from heedful.data.images.captions import Captioned, CaptionedImages
from heedful.data.images.labelled import LabelledImages, Part
from heedful.data.images.masks import SHAPES, MaskedImages, MaskedPart
from heedful.data.made import shapes
from heedful.data.parts import Parts
from heedful.data.proteins.made import made_chain
from heedful.data.sound.utterances import read_utterances
from heedful.data.text.corpus import Corpus
from heedful.data.text.documents import Documents
from heedful.data.text.judgements import Judgement
from heedful.data.text.labelled import Example, Labelled
from heedful.data.text.questions import Question, Span
from heedful.data.text.solved import Solved
from heedful.data.text.tagged import Sentence
from heedful.data.text.trees import Treebank, parse_trees
from heedful.data.tokenizer import train_tokenizer
from heedful.decode.settings import Decoding
from heedful.models import make_model
from heedful.models.presets import LANGUAGE_MODELS, lm_config
from heedful.run.events import Finished, Trained
from heedful.run.recipe import Recipe, keys_in, row_of
from heedful.tasks import TASKS
from heedful.tasks.generate.in_context import Asking
from heedful.tasks.generate.in_context import evaluate_in_context as ask
from heedful.tasks.prefer.recipe import Method, PreferSection
from heedful.tasks.recipes import build
from heedful.tasks.shared.embed import TextEncoder
from heedful.verbs.train import train
from made import backwards
from saved import save_run
from sounds import texts, utterances

WORDS = ["ba", "de", "gi", "ko"]
TEXTS = [f"{a} {b} {c}" for a in WORDS for b in WORDS for c in WORDS]
LINES = [f"{text}. {text[::-1]}\n" for text in TEXTS]
DOCUMENTS = Documents(LINES[:56], LINES[56:60], {"test": LINES[60:]}, "made", (), ())
PAIRS = Corpus(backwards(60, 1), backwards(4, 2), {"test": backwards(4, 3)}, "made", source="low", target="high")
JUDGED = [Judgement(t[:5], (t[6:], "no", t), ((0,), (1, 2)) if t[0] < "g" else ((0, 2), (1,))) for t in TEXTS]
SENTENCES = [Sentence((*t.split(),), (*("B-X" if word == "de" else "O" for word in t.split()),)) for t in TEXTS]
QUESTIONS = [Question(f"{t[:2]}?", f"{t[:2]} is {t[3:5]}.", (Span(t[3:5], 6),), t) for t in TEXTS]
TALKS = Parts(
    [({"role": "user", "content": t[:5]}, {"role": "assistant", "content": t[6:]}) for t in TEXTS],
    [({"role": "user", "content": t}, {"role": "assistant", "content": "ko"}) for t in WORDS],
    {"test": [({"role": "user", "content": t}, {"role": "assistant", "content": t}) for t in WORDS]},
    "made",
)
TREES = [*parse_trees([f"( (S (NP (DT a) (NN {a})) (VP (VBZ {b}))) )" for a in WORDS for b in WORDS], "made")]
TINY = {"d_model": 16, "n_heads": 2, "n_layers": 1, "context_length": 24, "dropout": 0.0}
BOTH = {"d_model": 16, "n_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
STACK_OF_STEPS = {"d_model": 16, "n_heads": 2, "n_layers": 1, "dropout": 0.0}
STACK = {"d_model": 16, "n_heads": 2, "d_ff": 32, "n_layers": 1, "dropout": 0.0}
SCENES = shapes.scenes("train", 6)
PIXELS = torch.stack([torch.from_numpy(one.pixels).permute(2, 0, 1) for one in SCENES])
NAMES = [str(i) for i in range(6)]
BACKBONE = {"widths": [16], "depths": [1], "kind": "basic", "stem": 8, "norm": "group"}
MIX = {"widths": [8, 16], "depths": [1, 1], "heads": [1, 2], "patches": [3, 3], "strides": [4, 2], "shorten": [2, 1]}
CLIP = {"image_width": 16, "image_layers": 1, "image_heads": 2, "patch": 16, "text_width": 16, "text_layers": 1}

DESCRIBED = {key: BOTH[key] for key in BOTH if key != "d_ff"} | {"patch": 16, "context_length": 24}


@dataclass(frozen=True)
class Case:
    """A training of a few steps, and the calls that are made to its model."""

    task: str
    preset: str
    model: dict[str, Any]
    corpus: Any
    uses: Callable[[Any, list[str]], Any]
    data: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)


def boxed() -> Any:
    part = BoxedPart(PIXELS, [tuple(Thing(own.kind, own.box) for own in one.shapes) for one in SCENES], NAMES)
    return BoxedImages(part, part, {"test": part}, "made", channels=3, size=(64, 64))


def masked() -> Any:
    part = MaskedPart(PIXELS, torch.stack([torch.from_numpy(one.mask)[None] for one in SCENES]), NAMES)
    return MaskedImages(part, part, {"test": part}, "made", channels=3, size=(64, 64), classes=SHAPES)


def labelled_images(channels: int = 3) -> Any:
    part = Part(PIXELS[:, :channels], [*"ababab"])
    return LabelledImages(part, part, {"test": part}, "made", channels=channels, size=(64, 64))


def captioned() -> Any:
    part = Captioned(PIXELS, [[f"Picture {i}", f"{'ab'[i % 2]} again"] for i in range(6)])
    return CaptionedImages(part, part, {"test": part}, "made", channels=3, size=(64, 64))


def asked() -> Any:
    part = Captioned(PIXELS, [["a", "no"]] * 6, [["what is it?", f"is it {i}?"] for i in range(6)])
    return CaptionedImages(part, part, {"test": part}, "made", channels=3, size=(64, 64))


def labelled(answer: str) -> Any:
    made = {
        "label": [Example(text, label=text[:2]) for text in TEXTS],
        "labels": [Example(text, labels=tuple(sorted(set(text.split())))) for text in TEXTS],
        "score": [Example(text, TEXTS[0], score=float(text.count("a"))) for text in TEXTS],
        "choice": [Example(text, "which", choices=(text[:2], "no"), choice=0) for text in TEXTS],
    }[answer]
    return Labelled(made, made[:6], {"test": made[6:12]}, "made", answer=answer)


SOUND_FOLDER = tempfile.TemporaryDirectory()


def spoken() -> Any:
    folder, said = Path(SOUND_FOLDER.name), texts(12)
    for name, part in (("train", said[:8]), ("valid", said[8:10]), ("test", said[10:])):
        utterances(folder, part, name=f"{name}.csv")
    return read_utterances(folder)


SPOKEN = spoken()


def labelled_sounds() -> Any:
    """The spoken words, by the letter that they begin with."""
    part = [row._replace(text="abc" if row.text < "d" else "def") for row in (*SPOKEN.train, *SPOKEN.valid)]
    return Parts(part, part, {"test": part[:4]}, "made")


SOUNDS = [str(row.file) for row in SPOKEN.tests["test"]]
HEARD = {"d_model": 16, "n_heads": 2, "encoder_layers": 1, "mels": 20, "dropout": 0.0}


def searched(model: Any, files: list[str]) -> Any:
    texts, longest = ["ba de gi", "ko", "lu lu ma ne"], {"longest": 6}
    return [
        model.search(texts, beam=1, **longest),
        model.search(texts, beam=3, n_best=2, length_penalty=0.6, no_repeat=2, shortest=2, **longest),
        model.search(texts, beam=2, prefix=["BA", "", "KO"], **longest),
        model.search(texts, samples=2, temperature=0.8, top_k=20, top_p=0.9, **longest),
        model.loss(PAIRS.valid),
    ]


def denoised(model: Any, files: list[str]) -> Any:
    return [model.search(["ba de <mask>", "ko"], beam=beam, longest=5) for beam in (1, 2)]


def said(model: Any, files: list[str]) -> Any:
    drawn = {
        "temperature": 0.9,
        "top_k": 9,
        "top_p": 0.9,
        "min_p": 0.01,
        "repetition_penalty": 1.2,
        "frequency_penalty": 0.3,
        "stop": ["z"],
    }
    solved = [Solved(text[:2], text[3:5], choices=(text[3:5], "no")) for text in TEXTS[::9]]
    return [
        model.generate(["ba", "", "de gi ko ba de gi ko ba"], tokens=9, temperature=0.0, batch=2),  # beyond the context
        model.generate(["ba de"], tokens=5, samples=3, **drawn),
        list(model.stream("ko", tokens=5, temperature=0.0)),
        model.likelihood(TEXTS[:3]),
        model.choose("ba", [" de", " gi ko"]),
        *(ask(model, solved[:3], Asking(shots=1, by=by), pool=solved[3:]).said for by in ("likelihood", "match")),
    ]


def chatted(model: Any, files: list[str]) -> Any:
    talks = [[{"role": "user", "content": text}] for text in ("ba", "ko de")]
    drawn = {"tokens": 5, "temperature": 0.9, "top_k": 9, "seed": 3}
    streamed = "".join(model.chat_stream(talks[0], tokens=5, temperature=0.0))
    return [model.chat_each(talks, tokens=5, temperature=0.0), model.chat(talks[1], **drawn), streamed]


def embedded(model: Any, files: list[str]) -> Any:
    encoder = TextEncoder(model.model, model.tokenizer, model.about | {"task": "fill"})
    filled = model.fill(["ba <mask> gi", "<mask>"], top=3)
    return [filled, encoder.embed(TEXTS[:3]), encoder.embed(TEXTS[:2], pool="first")]


def painted(model: Any, files: list[str]) -> Any:
    begun = model.begin(files[:1], keep=0.5)
    return [model.paint(begun, samples=2, seed=1), model.paint(None, samples=2, temperature=0.0)]


def matched(model: Any, files: list[str]) -> Any:
    return [model.match(files, ["a", "b again"]), model.embed_texts(["a"]), model.embed_images(files)]


WALKS = random_episodes("bandit-walk", range(48))
SWINGS = [
    episode([[n / 9, t, -t] for t in range(7)], [[n / 20 - t / 9] for t in range(7)], [n / 9] * 7, where="made")
    for n in range(12)
]
BEGUN_WALK = '{"observations": [0, 1], "actions": [1], "rewards": [1.0]}'
BEGUN_SWING = '{"observations": [[0, 1, -1]]}'


def acted(model: Any, files: list[str]) -> Any:
    if model.model.config.continuous:
        return [model.act([BEGUN_SWING, '{"observations": [[0, 1, 1], [1, 1, 1]], "actions": [[1]], "rewards": [2]}'])]
    return [model.act([BEGUN_WALK, "bandit-walk"]), model.act(BEGUN_WALK, asked=1.0)]


def named(model: Any, files: list[str]) -> Any:
    return model.classify(TEXTS[:5], choices=[["ba", "no"]] * 5 if model.spec.answer == "choice" else ())


CHAINS = [made_chain(number) for number in range(9)]
ALIGNED = ">first\nACDEFGHIK\n>other\nAC-EFaaGHIK\n"
PROTEIN_FOLDER = tempfile.TemporaryDirectory()
PROTEINS = [f"{PROTEIN_FOLDER.name}/{name}" for name in ("one.fasta", "two.a3m")]
for file, text in zip(PROTEINS, (">one\nGIVEQCCTSICSLYQLENYCN\n", ALIGNED), strict=True):
    Path(file).write_text(text)


CHARS = {"tokenizer": "chars"}
BPE = {"vocab_size": 300}
CASES = {
    "transformer": Case("translate", "transformer-tiny", BOTH, PAIRS, searched, BPE),
    "decoder": Case("translate", "decoder-tiny", STACK, PAIRS, searched, BPE),
    "rnn": Case(
        "translate",
        "rnn-small",
        {"d_embed": 16, "d_hidden": 24, "d_align": 16, "d_readout": 16, "dropout": 0.0},
        PAIRS,
        searched,
        BPE,
    ),
    "chat": Case("chat", "gpt-nano", TINY | {"context_length": 64}, TALKS, chatted, CHARS),
    "gpt": Case("generate", "gpt-nano", TINY, DOCUMENTS, said, CHARS),
    "experts": Case(
        "generate", "mixtral-nano", TINY | {"d_ff": 32, "experts": 4}, DOCUMENTS, said, CHARS | {"across": False}
    ),
    "spans": Case("denoise", "t5-small", BOTH | {"head_dim": 8}, DOCUMENTS, denoised, BPE | {"objective": "spans"}),
    "infill": Case(
        "denoise", "bart-base", BOTH | {"context_length": 40}, DOCUMENTS, denoised, BPE | {"objective": "infill"}
    ),
    "fill": Case("fill", "modern-tiny", TINY, DOCUMENTS, embedded, BPE),
    "pairs": Case("fill", "encoder-tiny", TINY, DOCUMENTS, embedded, BPE | {"pairs": "next"}),
    "label": Case("classify", "gpt-nano", TINY, labelled("label"), named, CHARS),
    "labels": Case("classify", "encoder-tiny", TINY, labelled("labels"), named, CHARS),
    "score": Case("classify", "gpt-nano", TINY, labelled("score"), named, CHARS),
    "choice": Case("classify", "encoder-tiny", TINY, labelled("choice"), named, CHARS),
    "tag": Case(
        "tag",
        "encoder-tiny",
        TINY,
        Parts(SENTENCES, SENTENCES[:6], {"test": SENTENCES[:6]}, "made"),
        lambda model, files: model.tag(["ba de", "", "gi"]),
        CHARS,
    ),
    "answer": Case(
        "answer",
        "encoder-small",
        TINY,
        Parts(QUESTIONS, QUESTIONS[:6], {"test": QUESTIONS[:6]}, "made"),
        lambda model, files: model.answer(["ba?"], ["ba is de. gi is ko. de is gi."], top=4),
        CHARS,
    ),
    "parse": Case(
        "parse",
        "transformer-tiny",
        BOTH,
        Treebank(TREES, TREES[:3], {"test": TREES[:3]}, "made"),
        lambda model, files: [list(map(str, model.parse(["a ba de", "", "gi"], beam=beam))) for beam in (1, 2)],
        BPE,
    ),
    "reward": Case(
        "reward",
        "gpt-nano",
        TINY,
        Parts(JUDGED, JUDGED[:6], {"test": JUDGED[:6]}, "made"),
        lambda model, files: [model.reward(["ba", "gi ko", ""], ["de", "", "ba"]), model.reward("ba de gi")],
        CHARS,
    ),
    "classify-images": Case(
        "classify-images",
        "vit-nano28",
        {"d_model": 16, "n_heads": 2, "n_layers": 1, "dropout": 0.0},
        labelled_images(),
        lambda model, files: model.classify(files),
        more={"images": {"size": 16, "batch": 3, "mixup": 0.2, "mirrored": True}},
    ),
    "detect": Case(
        "detect",
        "detr-nano",
        BOTH | {"decoder_layers": 2, "backbone": BACKBONE},
        boxed(),
        lambda model, files: model.detect(files, threshold=0.0),
        more={"images": {"size": 32, "batch": 3}},
    ),
    "segment": Case(
        "segment",
        "segformer-micro",
        MIX | {"d_head": 16},
        masked(),
        lambda model, files: model.segment(files),
        more={"images": {"size": 32, "batch": 3, "augment": "strong"}},
    ),
    "match": Case(
        "match",
        "clip-nano32",
        CLIP | {"d_common": 8, "text_heads": 2, "context_length": 16},
        captioned(),
        matched,
        CHARS,
        {"images": {"size": 32, "batch": 3}},
    ),
    "describe": Case(
        "describe",
        "describe-nano",
        DESCRIBED,
        captioned(),
        lambda model, files: [model.describe(files), model.describe(files, decode=Decoding(beam=2))],
        CHARS,
        {"images": {"size": 32, "batch": 3}},
    ),
    "questions": Case(
        "describe",
        "describe-nano",
        DESCRIBED,
        asked(),
        lambda model, files: model.describe(files, questions=["what is it?"] * len(files)),
        CHARS,
        {"images": {"size": 32, "batch": 3}},
    ),
    "choices": Case(
        "decide",
        "decision-nano",
        STACK_OF_STEPS,
        Parts(WALKS, WALKS[:6], {"test": WALKS[:6]}, "made"),
        acted,
        {"context": 4},
    ),
    "swings": Case(
        "decide",
        "decision-nano",
        STACK_OF_STEPS,
        Parts(SWINGS, SWINGS[:3], {"test": SWINGS[:3]}, "made"),
        acted,
        {"context": 4},
    ),
    "transcribe": Case(
        "transcribe",
        "speech-nano",
        HEARD | {"decoder_layers": 1, "context_length": 24},
        SPOKEN,
        lambda model, files: [model.transcribe(SOUNDS), model.texts([])],
        more={"sound": {"batch": 3}},
    ),
    "ctc": Case(
        "transcribe",
        "ctc-nano",
        HEARD,
        SPOKEN,
        lambda model, files: model.transcribe(SOUNDS),
        more={"sound": {"batch": 3}},
    ),
    "sounds": Case(
        "classify-sounds",
        "sounds-nano",
        HEARD,
        labelled_sounds(),
        lambda model, files: model.classify(SOUNDS),
        more={"sound": {"batch": 3}},
    ),
    "fold": Case(
        "fold",
        "fold-nano",
        {"n_layers": 1, "d_msa": 8, "d_pair": 8, "n_heads": 2, "head_dim": 4, "structure_layers": 1, "distances": 12},
        Parts(CHAINS, CHAINS[:3], {"test": CHAINS[:3]}, "made"),
        lambda model, files: [[*map(numpy.ndarray.tolist, each[1:])] for each in model.fold(["ACDEFGHIKL", ALIGNED])],
        {"sequences": 4, "residues": 16},
    ),
    "vectors": Case(
        "vectors",
        "vectors-100",
        {"d_model": 8},
        DOCUMENTS,
        lambda model, files: [model.near(["ba", "gi"]), model.analogy("ba", "de", "gi"), model.embed(TEXTS[:2])],
        {"min_count": 1, "window": 2},
    ),
    "paint": Case(
        "paint",
        "image-gpt-nano",
        {"n_layers": 1, "d_model": 16, "n_heads": 2, "dropout": 0.0},
        labelled_images(),
        painted,
        more={"images": {"size": 8, "colours": 6, "batch": 3}},
    ),
}


def recipe_of(case: Case, model: dict[str, Any], plan: dict[str, Any]) -> Recipe:
    """The recipe of a case, with those keys of the plan that its task has."""
    known = keys_in(TASKS[case.task].recipe(), ["train"])
    few = {key: value for key, value in plan.items() if key in known}
    sections = {"task": case.task, "preset": case.preset, "model": model, "data": case.data, "train": few}
    return build(sections | case.more, where="test")


def learnt(case: Case, out: Any, **changes: Any) -> Any:
    """The losses of the steps, and the scores on the test set, as in JSON. Without dropout, whose draws depend on the
    device."""
    plan = {"steps": 2, "eval_every": 2, "tokens": 256, "precision": "fp32", "eval_sentences": 3} | changes
    with mock.patch("heedful.core.dropout.dropout", lambda x, p: x):
        events = list(train(recipe_of(case, case.model, plan), out, corpus=case.corpus))
    losses = [[event.step.loss, event.step.norm] for event in events if isinstance(event, Trained)]
    (scores,) = [event.scores for event in events if isinstance(event, Finished)]
    return [losses, scores]


# For the methods of prefer: the model to start from, and the prompts that it answers.

BEGUN = TINY | {"context_length": 16, "dropout": 0.1}
METHODS: tuple[Method, ...] = get_args(Method)
PROMPTS = [f"{a}{b}" for a in "bdgk" for b in "aeio"]
PROMPTED = Parts(PROMPTS[:12], PROMPTS[12:14], {"test": PROMPTS[14:]}, "made")
PREFER = {"rollouts": 8, "batch": 3, "tokens": 5, "eval_answers": 6, "reward": "cases:vowels"}
FEW = {"steps": 9, "eval_every": 4, "save_every": 4, "lr": 1e-3}


def vowels(prompt: object, answer: str) -> float:
    return sum(map(answer.count, "aeio")) / max(1, len(answer))


def save_start(folder: Path) -> Path:
    """A run of a language model with initial weights."""
    torch.manual_seed(1)
    tokenizer = train_tokenizer(PROMPTS, kind="chars", size=300)
    row = row_of(LANGUAGE_MODELS, build({"task": "generate", "model": BEGUN}, where="test"))
    said = {tokenizer.bos, *(ids[0] for ids in tokenizer.encode_whole([*"aeiobdgk"]))}
    about = {"task": "generate", "forbidden": [index for index in range(tokenizer.size) if index not in said]}
    return save_run(folder, make_model(lm_config(row, vocab_size=tokenizer.size)), tokenizer, tokenizer, about)


def preferring(start: Path, method: str = "ppo", **changes: Any) -> Recipe:
    """A recipe for a training by a method, with changed keys of its section and of `train`."""
    own = {key: value for key, value in changes.items() if key in PreferSection.model_fields}
    rest = {key: value for key, value in changes.items() if key not in own}
    prefer = PREFER | {"method": method} | ({} if method == "ppo" else {"group": 4}) | own
    return build({"task": "prefer", "start_from": str(start), "prefer": prefer, "train": FEW | rest}, where="test")
