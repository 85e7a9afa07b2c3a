"""Translates by the two graphs beside this file: onnxruntime, tokenizers and numpy are all that it needs.

python translate.py "A first sentence." "A second one."
"""

import json
import sys
from pathlib import Path

import numpy
import onnxruntime
from tokenizers import Tokenizer

HERE = Path(__file__).parent


class Translator:
    """Greedy search; a beam keeps more rows of `input_ids` and `past`, and picks among them after each step."""

    def __init__(self, folder: Path = HERE) -> None:
        self.facts = json.loads((folder / "onnx.json").read_text("utf-8"))
        self.encoder, self.decoder = (
            onnxruntime.InferenceSession(folder / name, providers=["CPUExecutionProvider"])
            for name in ("encoder.onnx", "decoder.onnx")
        )
        self.source, self.target = (Tokenizer.from_file(str(folder / name)) for name in self.facts["tokenizers"])
        self.source.encode_special_tokens = not self.facts["spelled"]
        numbers = folder / "vocab.json"  # where the model has other ids than the tokenizer
        self.ids = json.loads(numbers.read_text("utf-8")) if numbers.is_file() else None
        self.tokens = {index: token for token, index in (self.ids or self.target.get_vocab()).items()}

    def encode(self, text: str) -> list[int]:
        found = self.source.encode(self.facts["space"] + text, add_special_tokens=False)
        own = found.ids
        if self.ids is not None:
            own = [self.ids.get(token, self.facts["unknown"]) for token in found.tokens]
        return [*self.facts["before"], *own[: self.facts["cut"]], *self.facts["after"]]

    def decode(self, ids: list[int]) -> str:
        tokens = [self.tokens[index] for index in ids if index in self.tokens and index not in self.facts["controls"]]
        text = self.target.decoder.decode(tokens)
        return text.removeprefix(self.facts["space"]) if self.ids is None else text.strip()

    def translate(self, text: str) -> str:
        return self.decode(self.search(self.encode(text))) if text.strip() else ""

    def search(self, source: list[int]) -> list[int]:
        """The ids of the likeliest next token at each step, up to the end. Raises ValueError for a source of more
        tokens than there are positions."""
        facts = self.facts
        if len(source) > facts["positions"]:
            raise ValueError(f"{len(source)} tokens, and the model reads at most {facts['positions']}")
        source_ids = numpy.array([source], numpy.int64)
        mask = numpy.ones_like(source_ids)
        names = [output.name for output in self.encoder.get_outputs()]
        found = self.encoder.run(None, {"input_ids": source_ids, "attention_mask": mask})
        memory = dict(zip(names, found, strict=True))
        empty = numpy.zeros((1, facts["heads"], 0, facts["head_dim"]), numpy.float32)
        past = {name.replace("memory", "past"): empty for name in names}
        newest, said = facts["bos"], list[int]()
        own = len(source) - len(facts["before"]) - len(facts["after"])
        for step in range(min(facts["longest"] or 2 * own + 12, facts["positions"])):
            given = {"input_ids": numpy.array([newest]), "attention_mask": mask, **past, **memory}
            logits, *present = self.decoder.run(None, given)
            ends = [facts["eos"]] if step < facts["shortest"] else []
            logits[:, [*facts["forbidden"], *repeated(said, facts["no_repeat"]), *ends]] = -numpy.inf
            newest = facts["begin"][step] if step < len(facts["begin"]) else int(logits[0].argmax())
            past = dict(zip(past, present, strict=True))
            if newest == facts["eos"]:
                break
            said.append(newest)
        return said


def repeated(said: list[int], size: int) -> list[int]:
    """The tokens by which so many in a row would be said twice; none of a size of 0."""
    last = said[len(said) - size + 1 :] if size else []
    return [said[at + size - 1] for at in range(len(said) - size + 1) if size and said[at : at + size - 1] == last]


if __name__ == "__main__":
    translator = Translator()
    for line in sys.argv[1:] or map(str.strip, sys.stdin):
        sys.stdout.write(translator.translate(line) + "\n")
