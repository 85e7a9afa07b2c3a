"""Attention inside a model that decides: at which returns, observations and actions it looked."""

from typing import Any

from torch import Tensor

from heedful.errors import InputError
from heedful.look.record import record
from heedful.run.task import Feed, Looked, NamedWeights
from heedful.tasks.decide.layout import DecideBatch
from heedful.tasks.decide.options import EpisodeLook
from heedful.tasks.decide.use import Decider
from heedful.tasks.shared.look import TextLook, draw_text, head_labels, looked_at, named_weights


def episode_tokens(decider: Decider, batch: DecideBatch) -> list[str]:
    """The three tokens of each step, for people; the last is the observation before the action that is chosen."""
    discrete = decider.spec.observations.kind == "discrete"
    tokens = []
    for returns, state, action, step in zip(*(part[0].tolist() for part in batch[:4]), strict=True):
        seen = f"sees {state.index(1.0)}" if discrete else f"sees {step}"
        tokens += [f"return {returns * decider.spec.scale:.3g}", seen, f"does {_action(action)}"]
    return tokens[:-1]


def _action(action: Any) -> str:
    return " ".join(f"{number:.2g}" for number in action) if isinstance(action, list) else str(action)


def look_within(decider: Decider, text: str, options: EpisodeLook) -> tuple[TextLook, Tensor]:
    """Records the attention weights while the model decides, and the logits of the action, or its numbers."""
    begun = decider.begun(text, options.asked)
    batch = decider.spec.batch([decider.spec.now(begun)])
    with record(decider.model, options.layer or "*") as recording:
        answer = decider.predicted([begun])[0]
    tokens = episode_tokens(decider, batch)
    weights = {name: recording.weights(name)[0, :, : len(tokens), : len(tokens)] for name in recording.names}
    return TextLook(text, tokens, tokens, tokens, weights, about=type(decider.model).__name__), answer


def look_at_episode(decider: Decider, text: str, kind: str, options: EpisodeLook) -> Looked:
    """The attention weights of the last steps, and what the observation of now looked at in the last layer."""
    looked, answer = look_within(decider, text, options)
    row = looked_at(looked, -1)
    likeliest = sorted(row, key=lambda pair: -pair[1])[:5]
    shares = ", ".join(f"{token} {share:.2f}" for token, share in likeliest)
    action = decider.chosen(answer)
    facts = {"input": text, "action": action, "layers": list(looked.weights), "heads": head_labels(looked), "now": row}
    picture = draw_text(looked, kind, head=options.head, chosen=options.layer is not None)
    return Looked(picture, f"it does {_action(action)}, and looks at {shares}", facts)


def attention_in_episode(decider: Decider, text: str, options: EpisodeLook) -> dict[str, NamedWeights]:
    """The weights that `look_at_episode` draws."""
    return named_weights(look_within(decider, text, options)[0], options.head)


def feed_episode(decider: Decider, text: str, pair: str | None) -> Feed:
    """What is said in the end is the action; actions that are vectors have no names. Raises InputError."""
    if pair is not None:
        raise InputError("this model reads one episode", fix="leave out --pair")
    batch = decider.spec.batch([decider.spec.now(decider.begun(text))])

    def run() -> Tensor | None:
        logits = decider.model(*batch)[0, -1]
        return None if decider.model.config.continuous else logits

    return Feed(episode_tokens(decider, batch), run, lambda index: f"action {index}")
