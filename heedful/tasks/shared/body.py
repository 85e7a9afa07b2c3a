"""Shared by the trainings of models that read texts: the body is a language model or an encoder, new or from another
run."""

from abc import abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, TypeVar

from heedful.data.tokenizer import Tokenizer, train_tokenizer
from heedful.models import config_from
from heedful.models.encoder import Encoder, EncoderConfig
from heedful.models.lm import LM, LMConfig
from heedful.models.presets import READERS, EncoderSize, encoder_config, lm_config
from heedful.run.card import fingerprint
from heedful.run.job import C, Job, M
from heedful.run.recipe import row_of
from heedful.run.start import Start, copy_weights, read_start
from heedful.tasks.shared.sections import TextRecipe

R = TypeVar("R", bound=TextRecipe)
GROWN = ("embed.tokens.weight", "head.weight", "head.bias")  # of a language model: have a row for each token
HEADS = ("transform.", "head.", "nsp_head.")  # of an encoder: not needed to read texts
POOLER = "pooler."


class BodyJob(Job[R, C, M]):
    """A new head on a body, whose weights are those of `start_from`, if that is given."""

    starts: ClassVar[tuple[str, ...]]  # tasks whose models it may begin with
    start: Start | None
    tokenizer: Tokenizer

    def __init__(self, recipe: R, corpus: C | None = None, begun: Path | None = None) -> None:
        super().__init__(recipe, corpus, begun)
        if self.start:
            self.tokenizer = self.start.source
        else:
            kind, most = recipe.data.tokenizer, recipe.data.vocab_size
            self.tokenizer = self.kept_tokenizer(lambda: train_tokenizer(self.texts(), kind=kind, size=most))
        self.fingerprint = fingerprint(map(repr, self.corpus.train))

    @abstractmethod
    def texts(self) -> Iterable[str]:
        """The texts that a new tokenizer is trained on."""

    def read_start(self) -> Start | None:
        return read_start(self.recipe, self.begun, *self.starts)

    def body(self, *, pooler: bool = False) -> LMConfig | EncoderConfig:
        """The body's configuration, for the size of the vocabulary. An encoder keeps no head, except the pooler if it
        is asked for."""
        config: LMConfig | EncoderConfig
        if self.start:
            config = config_from(self.start.model, where=f"{self.recipe.start_from}/config.json")
        else:
            row, size = row_of(READERS, self.recipe), self.tokenizer.size
            if isinstance(row, EncoderSize):
                config = encoder_config(row, vocab_size=size)
            else:
                config = lm_config(row, vocab_size=size)
        if isinstance(config, EncoderConfig):
            config = replace(config, mlm_head=False, nsp_head=False, pooler=pooler)
        return config

    def encoder(self) -> EncoderConfig:
        """The same for a task whose bodies are encoders."""
        body = self.body()
        assert isinstance(body, EncoderConfig)
        return body

    @abstractmethod
    def body_of(self, model: M) -> LM | Encoder: ...

    def new_heads(self) -> Collection[str]:
        return ("out",)

    def begin(self, model: M) -> None:
        if self.start:
            copy_body(self.body_of(model), self.recipe.start_from)


def copy_body(body: LM | Encoder, folder: str) -> None:
    """Copies the weights of the run in `folder`. What the run lacks stays as it is: rows for more tokens, a pooler."""
    if isinstance(body, LM):
        copy_weights(body, folder, grown=GROWN)
    elif body.pooler is None:
        copy_weights(body, folder, without=(*HEADS, POOLER))
    else:
        copy_weights(body, folder, without=HEADS, new=(POOLER,))
