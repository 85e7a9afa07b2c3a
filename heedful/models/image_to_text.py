"""A picture to text: a Vision Transformer, and a decoder stack that looks at its tokens (Li et al. 2023, TrOCR, figure
1). What is asked about the picture is the beginning of the text.

B pictures of N channels and H x W pixels, S tokens of each with D features, T target tokens, V vocabulary, C decoder
width.
"""

from dataclasses import dataclass, replace

from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.block import BlockConfig, Context, Memory, Stack, StackConfig
from heedful.core.embed import Embed, EmbedConfig, positions_of
from heedful.core.init import xavier
from heedful.core.mask import EVERYONE, Mask
from heedful.models.seq2seq import Seq2SeqState, next_hidden
from heedful.models.vit import ViT, ViTConfig


@dataclass(frozen=True, kw_only=True)
class ImageToTextConfig:
    d_model: int  # of the decoder
    encoder: ViTConfig  # its width may be another
    target: EmbedConfig
    decoder: StackConfig
    tied: bool = True  # one matrix embeds tokens and gives logits


class ImageToText(nn.Module):
    def __init__(self, config: ImageToTextConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = ViT(config.encoder)
        self.target = Embed(config.d_model, config.target)
        self.decoder = Stack(config.d_model, _with_memory(config.decoder, config.encoder.d_out))
        self.head = nn.Linear(config.d_model, config.target.vocab_size, bias=False)
        for part in (self.target, self.decoder, self.head):
            xavier(part)
        self.encoder.position_embeddings.begin_as_sines()
        if config.tied:
            self.head.weight = self.target.tokens.weight

    def forward(self, pixels: Float[Tensor, "B N H W"], target: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        """The logits of the token that follows each target token. Padding may stand behind a target."""
        return self.head(self.hidden(self.encode(pixels), target))

    def encode(self, pixels: Float[Tensor, "B N H W"]) -> Float[Tensor, "B S D"]:
        """The memory that the decoder looks at."""
        return self.encoder.hidden(pixels)

    def hidden(self, memory: Float[Tensor, "B S D"], target: Int[Tensor, "B T"]) -> Float[Tensor, "B T C"]:
        """The hidden states that `head` turns into logits."""
        positions = positions_of(target, None)
        context = Context(mask=Mask(causal=True), memory=Memory(memory, EVERYONE), positions=positions)
        return self.decoder(self.target(target, positions), context)

    def start(self, pixels: Float[Tensor, "B N H W"], size: int | None = None) -> Seq2SeqState:
        """Encodes once, and projects the memory once for every block; `size` as in Seq2Seq."""
        return Seq2SeqState(self.decoder.start(Memory(self.encode(pixels), EVERYONE), size), EVERYONE, 0)

    def step(self, tokens: Int[Tensor, "B"], state: Seq2SeqState) -> tuple[Float[Tensor, "B V"], Seq2SeqState]:
        """The logits of what follows `tokens`, the newest of each row."""
        x, state = next_hidden(self.target, self.decoder, tokens, state)
        return self.head(x), state


def _with_memory(stack: StackConfig, d_memory: int) -> StackConfig:
    """The same stack, which looks at a memory of this width."""

    def block(config: BlockConfig) -> BlockConfig:
        return config if config.cross is None else replace(config, cross=replace(config.cross, d_memory=d_memory))

    return replace(stack, block=block(stack.block), pattern=tuple(map(block, stack.pattern)))
