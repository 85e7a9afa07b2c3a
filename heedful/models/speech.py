"""Speech to text: features of sound through two convolutions and an encoder stack, which a decoder looks at (Radford et
al. 2023, Whisper, figure 1), or whose every position says a letter or nothing (Graves et al. 2006, CTC); and classes of
sound by the same encoder. Both of the latter may hear the samples themselves (`heedful.models.wave`).

B batch, M features (mel bands) a frame, F frames, S = ceil(F / 2) positions, T target tokens, V vocabulary, K classes,
C model width. Of samples M = 1, and a frame is one.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.block import Context, Memory, Stack, StackConfig
from heedful.core.dropout import Dropout
from heedful.core.embed import Embed, EmbedConfig, Table, fairseq_sinusoidal, positions_of
from heedful.core.init import xavier
from heedful.core.mask import EVERYONE, Mask
from heedful.errors import InputError
from heedful.models.seq2seq import Seq2SeqState, next_hidden
from heedful.models.wave import WaveEncoder, WaveEncoderConfig


@dataclass(frozen=True, kw_only=True)
class SoundEncoderConfig:
    mels: int = 80
    context_length: int = 1500  # positions: half as many as frames
    stack: StackConfig
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.mels < 1:
            raise InputError(f"{self.mels} mel bands", fix="give 1 or more")


@dataclass(frozen=True, kw_only=True)
class SpeechToTextConfig:
    d_model: int
    encoder: SoundEncoderConfig
    target: EmbedConfig
    decoder: StackConfig


@dataclass(frozen=True, kw_only=True)
class CTCConfig:
    d_model: int
    encoder: SoundEncoderConfig | WaveEncoderConfig
    vocab_size: int
    blank: int = 0  # the token of positions where no letter is said
    dropout: float = 0.0  # before the head


@dataclass(frozen=True, kw_only=True)
class SpeechClassifierConfig:
    d_model: int
    encoder: SoundEncoderConfig | WaveEncoderConfig
    d_projected: int  # of the mean over a sound
    n_classes: int


class SoundEncoder(nn.Module):
    """Two convolutions, of which the second halves the frames, positions, which begin as sines, and a stack."""

    def __init__(self, d_model: int, config: SoundEncoderConfig) -> None:
        super().__init__()
        self.frames = nn.Conv1d(config.mels, d_model, 3, padding=1)
        self.pairs = nn.Conv1d(d_model, d_model, 3, stride=2, padding=1)
        self.position_embeddings = Table(config.context_length, d_model)
        self.dropout = Dropout(config.dropout)
        self.stack = Stack(d_model, config.stack)

    def forward(self, sound: Float[Tensor, "B M F"], lengths: Int[Tensor, "B"] | None = None) -> Float[Tensor, "B S C"]:
        """Without `lengths`: a window is heard whole, with the silence that it is filled up with. Raises InputError for
        more frames than there are positions for, and for lengths."""
        if lengths is not None:
            raise InputError("lengths of sounds, and mel bands are heard in whole windows", fix="leave out lengths")
        x = F.gelu(self.pairs(F.gelu(self.frames(sound)))).mT
        table = self.position_embeddings.weight
        if x.shape[1] > len(table):
            raise InputError(f"{sound.shape[2]} frames, but the model has {len(table)} positions", fix="cut the sound")
        return self.stack(self.dropout(x + table[: x.shape[1]]), Context(mask=EVERYONE))

    def ends(self, x: Float[Tensor, "B S _"], lengths: Int[Tensor, "B"] | None = None) -> Int[Tensor, "B"]:
        """As in `WaveEncoder`."""
        return torch.full(x.shape[:1], x.shape[1], device=x.device)

    @torch.no_grad()
    def begin_as_sines(self) -> None:
        """Sines, then cosines, whose wavelengths go up to 2 pi times 10000 (Radford et al. 2023; their code)."""
        table = self.position_embeddings.weight
        positions = torch.arange(len(table), device=table.device) - 2  # fairseq begins to count at 2
        table.copy_(fairseq_sinusoidal(positions, table.shape[1]))


class SpeechToText(nn.Module):
    def __init__(self, config: SpeechToTextConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = SoundEncoder(config.d_model, config.encoder)
        self.target = Embed(config.d_model, config.target)
        self.decoder = Stack(config.d_model, config.decoder)
        self.head = nn.Linear(config.d_model, config.target.vocab_size, bias=False)
        xavier(self)
        self.encoder.begin_as_sines()
        self.head.weight = self.target.tokens.weight

    def forward(self, sound: Float[Tensor, "B M F"], target: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        """The logits of the token that follows each target token. Padding may stand behind a target."""
        return self.head(self.hidden(self.encode(sound), target))

    def encode(self, sound: Float[Tensor, "B M F"]) -> Float[Tensor, "B S C"]:
        """The memory that the decoder looks at."""
        return self.encoder(sound)

    def hidden(self, memory: Float[Tensor, "B S C"], target: Int[Tensor, "B T"]) -> Float[Tensor, "B T C"]:
        """The hidden states that `head` turns into logits."""
        positions = positions_of(target, None)
        context = Context(mask=Mask(causal=True), memory=Memory(memory, EVERYONE), positions=positions)
        return self.decoder(self.target(target, positions), context)

    def start(self, sound: Float[Tensor, "B M F"], size: int | None = None) -> Seq2SeqState:
        """Encodes once, and projects the memory once for every block; `size` as in Seq2Seq."""
        return Seq2SeqState(self.decoder.start(Memory(self.encode(sound), EVERYONE), size), EVERYONE, 0)

    def step(self, tokens: Int[Tensor, "B"], state: Seq2SeqState) -> tuple[Float[Tensor, "B V"], Seq2SeqState]:
        """The logits of what follows `tokens`, the newest of each row."""
        x, state = next_hidden(self.target, self.decoder, tokens, state)
        return self.head(x), state


class CTC(nn.Module):
    def __init__(self, config: CTCConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = sound_encoder(config.d_model, config.encoder)
        self.dropout = Dropout(config.dropout)
        self.head = nn.Linear(config.d_model, config.vocab_size)
        xavier(self)
        if isinstance(self.encoder, SoundEncoder):
            self.encoder.begin_as_sines()

    def forward(self, sound: Float[Tensor, "B M F"], lengths: Int[Tensor, "B"] | None = None) -> Float[Tensor, "B S V"]:
        """The logits of what each position says. `lengths`, of a model of samples: those of each sound, behind which it
        is filled up."""
        return self.head(self.dropout(self.encoder(sound, lengths)))


class SpeechClassifier(nn.Module):
    """Classes of whole sounds, by the mean over their positions (Yang et al. 2021, SUPERB, section 3.2)."""

    def __init__(self, config: SpeechClassifierConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = sound_encoder(config.d_model, config.encoder)
        self.projection = nn.Linear(config.d_model, config.d_projected)
        self.head = nn.Linear(config.d_projected, config.n_classes)
        xavier(self)
        if isinstance(self.encoder, SoundEncoder):
            self.encoder.begin_as_sines()

    def forward(self, sound: Float[Tensor, "B M F"], lengths: Int[Tensor, "B"] | None = None) -> Float[Tensor, "B K"]:
        """The logits of each class. `lengths`: as in `CTC`."""
        x = self.projection(self.encoder(sound, lengths))
        ends = self.encoder.ends(x, lengths)[:, None]
        real = torch.arange(x.shape[1], device=x.device) < ends
        return self.head(x.masked_fill(~real[..., None], 0.0).sum(1) / ends)


def sound_encoder(d_model: int, config: SoundEncoderConfig | WaveEncoderConfig) -> SoundEncoder | WaveEncoder:
    if isinstance(config, WaveEncoderConfig):
        return WaveEncoder(d_model, config)
    return SoundEncoder(d_model, config)
