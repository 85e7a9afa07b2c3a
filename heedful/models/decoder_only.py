"""A language model that translates: source and target are one sequence (x, δ, y), read by one stack (Liu et al. 2018,
section 4.2.3).

There is no encoder and no cross-attention, so at equal width and depth fewer than half of the weights remain. δ is what
separates them: the end of the source and the start of the target.

B batch, S source tokens, T target tokens, V vocabulary, C model width.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.init import xavier
from heedful.errors import InputError
from heedful.models.lm import LM, LMConfig, LMState


@dataclass(frozen=True, kw_only=True)
class DecoderOnlyTranslatorConfig:
    lm: LMConfig
    input_loss: float = 1.0  # weight of predicting the source in training, relative to the target (section 4.2.3)
    prefix: bool = False  # the source sees all of itself, as in an encoder (Raffel et al. 2020, section 3.2.1)

    def __post_init__(self) -> None:
        if not 0 <= self.input_loss < float("inf"):
            raise InputError(f"input_loss is {self.input_loss}", fix="give 0 or more")
        if self.prefix and self.input_loss:
            what = "a source that sees all of itself has nothing left to predict"
            raise InputError(what, where="prefix", fix="input_loss = 0")
        if self.prefix and any(layer.compress is not None for layer in self.lm.stack.layers):
            what = "a source that sees all of itself, through compressed keys"
            raise InputError(what, where="prefix", fix="prefix = false, or no compress")
        if self.lm.softcap is not None:
            raise InputError("a translator's logits have no cap", where="lm.softcap", fix="leave it out")


class DecoderOnlyTranslator(nn.Module):
    packs = True  # several sentences may share a row: segments keep them apart

    def __init__(self, config: DecoderOnlyTranslatorConfig) -> None:
        super().__init__()
        self.config = config
        self.lm = LM(config.lm, xavier)

    @property
    def head(self) -> nn.Linear:
        return self.lm.head

    def forward(
        self,
        source: Int[Tensor, "B S"],
        target: Int[Tensor, "B T"],
        source_segments: Int[Tensor, "B S"] | None = None,
        target_segments: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T V"]:
        """The logits of the token that follows each target token.

        Segments: 0 is padding, the sentences of a row are numbered from 1; None where each row is one whole sentence.
        """
        return self.head(self.hidden(source, target, source_segments, target_segments))

    def hidden(
        self,
        source: Int[Tensor, "B S"],
        target: Int[Tensor, "B T"],
        source_segments: Int[Tensor, "B S"] | None = None,
        target_segments: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T C"]:
        """The hidden states that `head` turns into logits."""
        return self.whole(source, target, source_segments, target_segments)[:, source.shape[1] :]

    def whole(
        self,
        source: Int[Tensor, "B S"],
        target: Int[Tensor, "B T"],
        source_segments: Int[Tensor, "B S"] | None = None,
        target_segments: Int[Tensor, "B T"] | None = None,
        losses: list[Tensor] | None = None,
    ) -> Float[Tensor, "B S+T C"]:
        """As `hidden`, but of the source too: `head` turns each into the logits of the token that follows.

        All sources of a row come before all of its targets, and a segment is one sequence in two pieces: its positions
        continue from the one into the other. Blocks that have losses of their own leave them in `losses`. Raises
        InputError if only one side has segments.
        """
        if (source_segments is None) != (target_segments is None):
            raise InputError("segments of one side alone", fix="give them for source and target, or for neither")
        segments = None
        if source_segments is not None and target_segments is not None:
            segments = torch.cat([source_segments, target_segments], dim=1)
        prefix = source.shape[1] if self.config.prefix else 0
        tokens = torch.cat([source, target], dim=1)
        if segments is None or prefix or not self.lm.stack.by_nearness:
            return self.lm.hidden(tokens, segments, prefix, losses)
        # What is near in a text must stand side by side: each source before its own target, and padding before all.
        order = segments.argsort(dim=1, stable=True)
        hidden = self.lm.hidden(tokens.gather(1, order), segments.gather(1, order), 0, losses)
        return hidden.gather(1, order.argsort(dim=1)[..., None].expand_as(hidden))

    def start(
        self, source: Int[Tensor, "B S"], segments: Int[Tensor, "B S"] | None = None, size: int | None = None
    ) -> LMState:
        """Reads the source. With `size`, there is room for that many tokens, source and target; without, the cache
        grows."""
        return self.lm.start(source, segments, size, causal=not self.config.prefix)

    def step(self, tokens: Int[Tensor, "B"], state: LMState) -> tuple[Float[Tensor, "B V"], LMState]:
        """The logits of what follows `tokens`, the newest of each row."""
        return self.lm.step(tokens, state)
