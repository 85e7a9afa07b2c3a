"""The files beside the weights of a model of pictures and texts: how each of them is prepared."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import normalizers

from heedful.core.config import to_json
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError, MissingError
from heedful.exchange.hub import TOKENIZER, Files, HubTokens, around, framed, hub_tokenizer, read_tokenizer
from heedful.exchange.preprocessor import PREPROCESSOR, preprocessor, read_preparation
from heedful.models.clip import CLIPConfig
from heedful.run.task import Hub, HubFiles
from heedful.run.tokenizers import tokenizer_files
from heedful.tasks.match.use import Matcher, MatchSpec


def read_matcher(folder: Path, said: Mapping[str, Any], config: CLIPConfig) -> Files:
    """What begins and ends a text is what their tokenizer puts around it: old files of CLIP number these tokens wrong.
    Raises InputError where it is not one token each, the last of them the one that the model looks at."""
    if not (folder / TOKENIZER).is_file():  # bare lists of pieces do not say that their words have ends
        fix = "with transformers: AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)"
        raise MissingError("no tokenizer", where=str(folder / TOKENIZER), fix=fix)
    inner, text = read_tokenizer(folder, framed=True), config.text
    before, after = around(inner)
    if len(before) != 1 or after != [text.end]:
        what = f"puts {before} before a text and {after} behind it, and the model reads it at a {text.end}"
        raise InputError(what, where=str(folder / TOKENIZER), fix="get the tokenizer that belongs to the model")
    names = HubTokens(folder, {}, inner.get_vocab(), size=text.embed.vocab_size)
    tokenizer = Tokenizer(inner, names.special(bos=before[0], eos=text.end))
    prepared = read_preparation(folder, channels=config.image.patches.channels)
    if prepared.size != config.image.patches.size:
        what = f"pictures of {prepared.size} pixels, and a model of {config.image.patches.size}"
        raise InputError(what, where=str(folder / PREPROCESSOR), fix="get the file that belongs to the model")
    about = {"task": "match", **to_json(MatchSpec(preparation=prepared, lower=False))}  # its tokenizer does that
    return tokenizer_files(tokenizer, tokenizer) | {"task.json": about}


def write_matcher(run: Path, matcher: Matcher) -> HubFiles:
    tokenizer, layout, spec = matcher.tokenizer, matcher.layout, matcher.spec
    inner = framed(tokenizer, [tokenizer.bos], [layout.end])
    first = [normalizers.Lowercase()] if spec.lower else []
    space = [normalizers.Prepend(" ")] if tokenizer.ours else []
    if first or space:
        own = [] if inner.normalizer is None else [inner.normalizer]
        inner.normalizer = normalizers.Sequence([*first, *space, *own])
    special = tokenizer.special
    roles = {"bos": special.bos, "eos": layout.end, "pad": special.pad, "unk": special.unk}
    made = hub_tokenizer(tokenizer, inner, roles, longest=layout.context)
    made[PREPROCESSOR] = preprocessor(spec.preparation) | {"processor_class": "CLIPProcessor"}
    return HubFiles(made, {"start": tokenizer.bos, "pad": tokenizer.pad})


HUB = Hub(read_matcher, write_matcher)
