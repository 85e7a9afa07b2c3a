"""The recipe of a translator."""

from typing import ClassVar, Literal

from pydantic import Field

from heedful.run.recipe import Presets, Section
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import DecodeSection, PackedTrain, TextRecipe, TokenizedData


class PairsData(TokenizedData):
    """Where the pairs of texts are, and how they become tokens."""

    # Wider than of other tasks: whatever reads it of translators knows that it may be two.
    path: str | tuple[str, ...] = Field(  # type: ignore[assignment]
        "",
        description="a file, a folder, or whatever else `heed train --data` takes; or a list of such, each with a "
        "weight such as `b.tsv:0.2`, or of two files of two languages",
    )
    valid: tuple[str, ...] = Field(
        (), description="a file to validate on, or two of two languages, in place of what is held out (`--valid`)"
    )
    test: tuple[str, ...] = Field(
        (), description="files to test on, each a test of its own, or two of two languages (`--test`)"
    )
    mix: tuple[str, ...] = Field(
        (),
        description="general pairs against forgetting: of `memory.tmx:0.2` a fifth of each epoch is drawn (`--mix`)",
    )
    synthetic: tuple[str, ...] = Field(
        (),
        description="pairs that models wrote, to train on beside those of `path`, of which alone some are held out; "
        "each a file or folder, with a weight such as `back.tsv:0.5` (`--synthetic`)",
    )
    originals: float = Field(
        1.0,
        ge=0,
        description="with synthetic: how often an epoch has each pair of `path`; 0: synthetic ones alone",
    )
    tag: str = Field(
        "",
        description="a column or key of tables that says what kind each pair is of, such as formal; a model can be "
        "asked for each (`--tag`). Behind a path `#formal` says it of all of its pairs",
    )
    source: str = Field("", description="the language, column or key to translate from")
    target: str = Field("", description="the language, column or key to translate to")
    joint: bool = Field(True, description="both sides share one vocabulary")
    longest: int = Field(
        200, ge=8, description="at most so many tokens in a side; longer pairs are left out of training"
    )
    scores: Literal["bleu", "rouge"] = Field(
        "bleu", description="bleu: BLEU and chrF, for translations; rouge: ROUGE, for summaries"
    )
    bpe_dropout: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="leave out each merge of BPE with this probability in training, so that each epoch cuts words "
        "otherwise; 0.1 is usual",
    )
    bpe_dropout_side: Literal["both", "source", "target"] = Field("both", description="where merges are left out")
    cut: bool = Field(False, description="cut longer sources, such as documents, at the end, in training and in use")


class NoiseSection(Section):
    """Sources as people type them: how many of 1, in training, other ones in each epoch."""

    capitals: float = Field(0.0, ge=0, le=1, description="are in CAPITALS, of which the vocabulary then has pieces")
    lower: float = Field(0.0, ge=0, le=1, description="have no capitals")
    typos: float = Field(0.0, ge=0, le=1, description="have a typing error in a tenth of their words, at least in one")
    punctuation: float = Field(0.0, ge=0, le=1, description="have no punctuation")
    urls: float = Field(0.0, ge=0, le=1, description="end with a URL, which their targets end with too")


class TranslateRecipe(TextRecipe):
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.presets:TRANSLATORS")
    SIZES: ClassVar = ("transformer-tiny", "transformer-small", "transformer-base-pre")
    STACKS: ClassVar = {"encoder_layers": "encoder", "decoder_layers": "decoder"}
    FEWEST_STEPS: ClassVar = 2_000  # that one which begins with nothing makes, where no budget is given
    PURPOSE: ClassVar = "Translates {source} to {target}."  # these two are for the model card
    EXAMPLE: ClassVar = "A sentence in {source}."

    task: str = "translate"
    preset: str = "transformer-small"
    data: PairsData = PairsData()
    noise: NoiseSection = NoiseSection()
    train: PackedTrain = PackedTrain()
    decode: DecodeSection = DecodeSection()
