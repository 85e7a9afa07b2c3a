"""How a language model continues a text, step by step."""

from collections.abc import Iterator, Sequence

import torch

from heedful.decode.settings import Sampling
from heedful.errors import InputError
from heedful.run.task import Ask
from heedful.tasks.generate.use import LanguageModel
from heedful.tasks.shared.steps import Stepped, StepsOptions, steps_of

GREEDY = Sampling(temperature=0.0)


def steps_writing(model: LanguageModel, texts: Sequence[str], options: StepsOptions) -> Iterator[Stepped]:
    """Generates greedily after each text, and returns the steps. Raises InputError for a text that does not fit the
    model's context."""
    options.check(model.tokenizer)
    for text in texts:
        yield steps_after(model, model.begun(text), options, where=f"{text[:40]}...")


def steps_after(model: LanguageModel, begun: Sequence[int], options: StepsOptions, *, where: str) -> Stepped:
    """The steps of a greedy continuation of these tokens. Raises InputError for more tokens than fit the model's
    context."""
    said = [*options.chosen]
    room = model.context - len(begun) - len(said)
    if room < 1:
        what = f"{len(begun) + len(said):,} tokens, but the model reads at most {model.context - 1:,} to say the next"
        raise InputError(what, where=where, fix="give less text")
    if (new := min(room, options.first + options.most - len(said))) > 0:
        writer = model.writer(rows=1)
        writer.add([*begun, *said], GREEDY, tokens=new)
        while len(writer):
            for piece in writer.step():
                said += [index for index in (piece.token, piece.end) if index is not None]
    with torch.inference_mode():
        logits = model.model(torch.tensor([[*begun, *said]], device=model.device))[0, len(begun) - 1 : -1].cpu()
    steps = steps_of(logits, said, model.tokenizer, options, before=begun, forbidden=model.forbidden)
    return {
        "text": model.tokenizer.decode_after(begun, [token for token in said if token not in model.ends]),
        "steps": steps,
    }


ASK = Ask(steps_writing, StepsOptions)
