"""Language models in CTranslate2, which also generates the text."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.data.tokenizer import Ids
from heedful.decode.search import greedy
from heedful.exchange.ctranslate2 import (
    Convertible,
    as_words,
    export_verified,
    library_model,
    random_rows,
    row_log_probabilities,
)
from heedful.run.task import Law, LibraryEngine
from heedful.tasks.generate.use import LanguageModel
from heedful.tasks.shared.probes import a_few

USE = """
## By CTranslate2

    pip install ctranslate2 tokenizers

```python
import ctranslate2
from tokenizers import Tokenizer

text = "A text that"
generator = ctranslate2.Generator(".")  # this folder
tokenizer = Tokenizer.from_file("tokenizer.json")
tokenizer.encode_special_tokens = {not_spelled}
tokens = [*{before}, *tokenizer.encode(text, add_special_tokens=False).tokens]
found = generator.generate_batch(
    [tokens], max_length=10, include_prompt_in_result=False, end_token={ends}, suppress_sequences={never}
)
print(text + tokenizer.decode(found[0].sequences_ids[0]))
```
"""


def convertible_lm(model: LanguageModel) -> Convertible:
    return Convertible(model.model, model.tokenizer, model.tokenizer, model.end, model.about)


@torch.inference_mode()
def compare_lm(folder: Path, made: Convertible) -> tuple[Tensor, Tensor]:
    """The log-probabilities of the tokens of random rows, by the library and by the model."""
    rows = random_rows(made.target.size, (8, 4), torch.Generator().manual_seed(0))
    scored = library_model(folder, "Generator").score_batch(as_words(rows, made.words().target))
    logits = [made.model(torch.tensor([row[:-1]])) for row in rows]
    return torch.tensor([chance for row in scored for chance in row.log_probs]), row_log_probabilities(logits, rows)


def export_lm(run: Path, model: LanguageModel, out: Path, *, quantize: str | None = None) -> float:
    made = convertible_lm(model)
    return export_verified(run, made, compare_lm, out, use=lambda: use_of(model), quantize=quantize)


def use_of(model: LanguageModel) -> str:
    """The usage text: how to continue a text with the library alone."""
    named = convertible_lm(model).words().target
    return USE.format(
        not_spelled=not model.tokenizer.special.spelled,
        before=[named[index] for index in model.before],
        ends=[named[index] for index in model.ends],
        never=[[named[index]] for index in model.forbidden] or None,
    )


def greedy_by_ctranslate2(
    folder: Path, model: LanguageModel, prompts: Sequence[Ids], *, tokens: int
) -> list[list[int]]:
    """Continues prompts greedily with the exported language model in a folder: at most `tokens` new tokens each."""
    named = convertible_lm(model).words().target
    found = library_model(folder, "Generator").generate_batch(
        as_words(prompts, named),
        max_length=tokens,
        include_prompt_in_result=False,
        end_token=[named[index] for index in model.ends],
        suppress_sequences=[[named[index]] for index in model.forbidden] or None,
    )
    return [each.sequences_ids[0] for each in found]


def lm_engine_laws(folder: Path, served: LanguageModel, texts: Sequence[str]) -> Iterator[Law]:
    """Checks that CTranslate2 gives the same tokens as the model, with a folder that was exported for this."""
    sentences = a_few(served.tokenizer.encode_whole(list(texts)), served.tokenizer.size)
    half = max(1, served.context // 2)
    prompts = [[*served.before, *ids][:half] for ids in sentences]
    options: dict[str, Any] = {"eos": served.ends, "longest": min(20, half), "forbidden": served.forbidden}
    ours = [greedy(served.model, torch.tensor([ids[:-1]]), bos=ids[-1], **options)[0].tokens for ids in prompts]
    theirs = greedy_by_ctranslate2(folder, served, prompts, tokens=min(20, half))
    unequal = sum(list(a) != b for a, b in zip(ours, theirs, strict=True))
    yield Law(
        "CTranslate2: greedy (different tokens)",
        float(unequal),
        0.0,
        otherwise="the other engine would say something else",
    )


ENGINE = LibraryEngine(load=None, export=export_lm, laws=lm_engine_laws, kind="Generator")
