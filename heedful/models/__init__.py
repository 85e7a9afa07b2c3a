"""Floor 2: each family of models as a short assembly on the core."""

from typing import Any

from heedful.core.config import from_json, to_json
from heedful.errors import InputError
from heedful.models.classifier import Classifier, ClassifierConfig
from heedful.models.encoder import Encoder, EncoderConfig
from heedful.models.lm import LM, LMConfig
from heedful.models.rnn import RNN, RNNConfig
from heedful.models.seq2seq import Seq2Seq, Seq2SeqConfig

# Models that read a source and write a target.
EncoderDecoder = Seq2Seq | RNN

# What a `config.json` may say under "kind".
KINDS: dict[str, tuple[type, Any]] = {
    "seq2seq": (Seq2SeqConfig, Seq2Seq),
    "rnn": (RNNConfig, RNN),
    "lm": (LMConfig, LM),
    "classifier": (ClassifierConfig, Classifier),
    "encoder": (EncoderConfig, Encoder),
}


def make_model(config: Any) -> Any:
    """The model that a configuration describes, with weights as at the begin of a training."""
    return next(model for kind, model in KINDS.values() if isinstance(config, kind))(config)


def model_from(data: dict[str, Any]) -> Any:
    """The model that the content of a `config.json` describes, on the current device ("meta" allocates nothing).

    Raises InputError for what it does not know.
    """
    if data.get("kind") not in KINDS:
        raise InputError(f"kind {data.get('kind')!r} is none of {', '.join(KINDS)}", where="config.json")
    config_kind, model = KINDS[data["kind"]]
    return model(from_json(config_kind, data.get("model"), where="config.json: model"))


def config_of(model: Any) -> dict[str, Any]:
    """What `model_from` makes this model from."""
    kind = next(name for name, (_, model_kind) in KINDS.items() if isinstance(model, model_kind))
    return {"kind": kind, "model": to_json(model.config)}
