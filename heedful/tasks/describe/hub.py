"""The files beside the weights of a model that writes texts about pictures: how it prepares them, its tokenizer, and
how it searches."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.core.config import to_json
from heedful.data.tokenizer import Tokenizer
from heedful.decode.settings import DecodingOptions
from heedful.errors import InputError
from heedful.exchange.hf.keys import PARAMS, params_of
from heedful.exchange.hub import GENERATION, Files, HubTokens, framed, generation_config, hub_tokenizer, read_tokenizer
from heedful.exchange.preprocessor import PREPROCESSOR, preprocessor, read_preparation
from heedful.models import ImageToTextConfig
from heedful.run.task import Hub, HubFiles
from heedful.run.tokenizers import tokenizer_files
from heedful.tasks.describe.use import Describer, DescribeSpec

OWN, QUESTIONS = "image-to-text", "questions"  # where config.json has what no other library reads


def read_describer(folder: Path, theirs: Mapping[str, Any], config: ImageToTextConfig) -> Files:
    """`theirs`: their config.json. Raises InputError for a search that cannot be followed."""
    inner, longest = read_tokenizer(folder, framed=True), config.target.context_length
    ids = {key: value for key, value in theirs["decoder"].items() if key.endswith("_token_id")}
    whole = ids | {key: value for key, value in theirs.items() if value is not None}
    tokens = HubTokens(folder, whole, inner.get_vocab(), size=config.target.vocab_size)
    bos, eos = tokens.token("decoder_start"), tokens.token("eos")
    if bos is None or eos is None:
        raise InputError("decoder_start_token_id or eos_token_id is none of its tokens", where=str(folder))
    if first := tokens.begin():
        raise InputError(f"forced_bos_token_id is {first[0]}, which cannot be followed", where=str(folder))
    search = tokens.search(eos=eos, context_length=longest)
    if lost := [key for key in ("no_repeat", "shortest", "renormalise") if search.get(key)]:
        raise InputError(f"its search has {lost[0]} = {search[lost[0]]}, which cannot be followed", where=str(folder))
    decode = DecodingOptions(beam=search["beam"], length_penalty=search["length_penalty"])
    decode["longest"] = min(search["longest"], longest - 1)
    if "early_stopping" in search and decode["beam"] > 1:
        decode["early_stopping"] = search["early_stopping"]
    spec = DescribeSpec(
        preparation=read_preparation(folder, channels=config.encoder.patches.channels),
        questions=params_of(theirs, OWN).get(QUESTIONS, "never"),
        decode=decode,
        forbidden=tuple(tokens.forbidden()),
    )
    if spec.preparation.size != config.encoder.patches.size:
        what = f"pictures of {spec.preparation.size} pixels, and a model of {config.encoder.patches.size}"
        raise InputError(what, where=str(folder / PREPROCESSOR), fix="get the file that belongs to the model")
    tokenizer = Tokenizer(inner, tokens.special(bos=bos, eos=eos))
    return tokenizer_files(tokenizer, tokenizer) | {"task.json": {"task": "describe", **to_json(spec)}}


def write_describer(run: Path, describer: Describer) -> HubFiles:
    """Raises InputError for a model that sees nothing."""
    spec, tokenizer, how = describer.spec, describer.tokenizer, describer.decoding
    if spec.blank:
        raise InputError("a model that is shown grey in place of every picture", where=str(run), fix="use it here")
    bos, eos, pad = tokenizer.bos, tokenizer.eos, tokenizer.pad
    inner = framed(tokenizer, [bos], [eos])
    roles = {"bos": bos, "eos": eos, "pad": pad, "unk": tokenizer.unk}
    search: dict[str, Any] = {
        "decoder_start_token_id": bos,
        "bos_token_id": bos,
        "eos_token_id": eos,
        "pad_token_id": pad,
        "num_beams": how.beam,
        "length_penalty": how.length_penalty,
        "max_length": min(how.longest or describer.longest, describer.longest) + 1,
        "early_stopping": how.early_stopping or None,
    }
    files = hub_tokenizer(tokenizer, inner, roles, longest=describer.longest + 1)
    files |= {PREPROCESSOR: preprocessor(spec.preparation), GENERATION: generation_config(search, spec.forbidden)}
    asked = spec.questions != "never"
    params = {PARAMS: {OWN: {QUESTIONS: spec.questions}}} if asked else {}
    notes = ["there a question is given as decoder_input_ids, behind the token that begins"] if asked else []
    return HubFiles(files, {"pad": pad, "start": bos, "end": eos}, params, notes)


HUB = Hub(read_describer, write_describer)
