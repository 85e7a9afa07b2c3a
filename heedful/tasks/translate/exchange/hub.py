"""The files beside the weights of a translator on the Hub: its tokenizers, and how it searches."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from heedful.core.config import from_json
from heedful.data.spm import from_spm
from heedful.data.tokenizer import SpecialTokens, Tokenizer
from heedful.decode.settings import Decoding
from heedful.errors import InputError
from heedful.exchange.hf import keys
from heedful.exchange.hf.folder import CONFIG
from heedful.exchange.hub import (
    GENERATION,
    TOKENIZER,
    Files,
    HubTokens,
    around,
    framed,
    generation_config,
    hub_tokenizer,
    read_tokenizer,
    space_before,
    text_decoder,
)
from heedful.exchange.lists import (
    FAIRSEQ_PIECES,
    MERGES,
    SPM_LIMIT,
    TOKENIZER_CONFIG,
    listed_tokens,
    read_pieces,
    token_names,
)
from heedful.exchange.trial import refuse_harmful
from heedful.models.seq2seq import Seq2Seq, Seq2SeqConfig
from heedful.run.task import Hub, HubFiles
from heedful.run.tokenizers import NUMBERS, read_piece_ids, tokenizer_files
from heedful.store import files
from heedful.tasks.translate.exchange.hub_languages import (
    direction_of,
    params_of,
    read_languages,
    reader_of,
    with_languages,
)
from heedful.tasks.translate.exchange.lost import lost
from heedful.tasks.translate.spec import NAME, TASK, TranslatorSpec
from heedful.tasks.translate.use import Translator

SPM = ("source.spm", "target.spm")
OWN = "translation"  # where config.json has what no other library reads


# What task.json says that no file of theirs does: of the sources that were learnt from and those that are read, of how
# it is scored, of a denoiser what it was taught, and which directions and kinds can be asked for.
KEPT = ("source_tokens", "reads_capitals", "longest_source", "scores", "noise", "languages", "tags", "tagged")
# Of a run that says no `longest`, or prefers what has ended, for which the Hub has no words.
BY_SOURCE, FINISHED_FIRST = "longest_by_source", "finished_first"


def read_translator(folder: Path, said: Mapping[str, Any], config: Seq2SeqConfig) -> Files:
    """The tokenizer is a tokenizer.json for both sides; or a SentencePiece model, of both or a side, and their pieces'
    ids.

    `said`: their config.json, with the ids that it leaves out.
    """
    spm = _spm_files(folder)
    inner = None if spm else read_tokenizer(folder, framed=True)
    numbers = _numbers(folder, joint=spm != SPM) if inner is None else inner.get_vocab()
    tokens = HubTokens(folder, said, numbers, size=min(config.source.vocab_size, config.target.vocab_size))
    languages = read_languages(tokens, said)
    begins = languages is not None and languages.target in ("begin", "start")
    special = _special(tokens, language_begins=begins)
    kept: Files = {name: files.read_bytes(folder / name, limit=SPM_LIMIT) for name in spm}
    if inner is not None:
        (before, after), source = around(inner), Tokenizer(inner, special)
        target = source
    else:
        before, after = [], [special.eos]
        marks = languages.tokens.values() if languages is not None and spm != SPM else ()
        source, target = _of_pieces(folder, spm, numbers, special, marks)
    own = keys.params_of(said, OWN)
    decode = _decode(tokens, own, eos=special.eos, context_length=config.target.context_length)
    given = {key: value for key, value in own.items() if key in KEPT and value is not None}
    kept_spec = TranslatorSpec.read(given, where=f"{folder / CONFIG}: {keys.PARAMS}")
    spec = replace(
        kept_spec,
        task=NAME,
        source=str(tokens.names.get("source_lang") or "source"),
        target=str(tokens.names.get("target_lang") or "target"),
        before=tuple(before),
        after=tuple(after),
        begin=tuple(tokens.begin()),
        forbidden=tuple(tokens.forbidden()),
        decode=decode,
        languages=languages or kept_spec.languages,
    )
    if languages is not None and begins:
        one, other = direction_of(languages, tokens)
        spec = spec.between(one, other, source)
        if (start := languages.start(other)) is not None and source is target:
            source = target = source.begun_by(start)
    return kept | tokenizer_files(source, target) | {TASK: spec.written()}


def _spm_files(folder: Path) -> tuple[str, ...]:
    """SentencePiece's models, of both sides or of each; none where a tokenizer is in the library's format, or lists."""
    if not (folder / NUMBERS).is_file() or any((folder / name).is_file() for name in (TOKENIZER, MERGES)):
        return ()
    return (FAIRSEQ_PIECES,) if (folder / FAIRSEQ_PIECES).is_file() else SPM


def _special(tokens: HubTokens, *, language_begins: bool) -> SpecialTokens:
    """Raises InputError where no token begins or ends a target, unless its language begins it, and for what cannot be
    read."""
    bos, eos = tokens.token("decoder_start"), tokens.token("eos")
    bos = eos if bos is None and language_begins else bos
    if bos is None or eos is None:
        what = "decoder_start_token_id or eos_token_id is none of its tokens"
        raise InputError(what, where=str(tokens.folder / CONFIG))
    if tokens.names.get("separate_vocabs"):
        raise InputError("separate_vocabs cannot be read yet", where=str(tokens.folder))
    return tokens.special(bos=bos, eos=eos)


def _of_pieces(
    folder: Path, names: Sequence[str], numbers: dict[str, int], special: SpecialTokens, marks: Iterable[int]
) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers of SentencePiece's models, one object where one is of both sides; `marks` are no text."""
    never = {special.bos, special.eos, special.pad, special.unk, *marks}
    controls = [name for name, index in numbers.items() if index in never]
    read = []
    for name in names:
        inner = from_spm(read_pieces(folder / name), numbers, controls)
        refuse_harmful(inner.to_str().encode(), where=folder / name)
        read.append(Tokenizer(inner, special, numbers))
    return read[0], read[-1]


def _decode(tokens: HubTokens, own: Mapping[str, Any], *, eos: int, context_length: int) -> dict[str, Any]:
    """How it searches: as the files say, and as they say of a run for which the Hub has no words. Raises InputError."""
    decode = tokens.search(eos=eos, context_length=context_length)
    from_json(Decoding, decode, where=str(tokens.folder / GENERATION))  # which looks at the type of every value
    if own.get(BY_SOURCE) is True and decode["longest"] == context_length - 1:
        del decode["longest"]
    if own.get(FINISHED_FIRST) is True:
        decode.pop(FINISHED_FIRST, None)
    return decode


def _numbers(folder: Path, *, joint: bool) -> dict[str, int]:
    """The ids of SentencePiece's pieces, which its model does not say; and, where one is of both sides, of languages.
    Raises InputError where an added token has none."""
    numbers = read_piece_ids(folder / NUMBERS)
    if joint:
        numbers = with_languages(numbers, token_names(folder), where=str(folder))
    added = [token.content for token in listed_tokens(folder, token_names(folder)).values()]
    if strange := [name for name in added if name not in numbers]:
        what = f"the added token {strange[0]!r} is not in {NUMBERS}, where those of this model have to be"
        raise InputError(what, where=str(folder), fix="take the model that it was made of")
    return numbers


def write_translator(run: Path, translator: Translator) -> HubFiles:
    """Raises InputError for two tokenizers that did not come from SentencePiece."""
    source, target, spec = translator.source, translator.target, translator.spec
    model, languages = translator.model, spec.languages
    assert isinstance(model, Seq2Seq)  # no other family of the Hub translates
    longest = model.config.target.context_length
    made = _tokenizers(run, translator, longest)
    said: dict[str, Any] = {}
    if languages is not None and languages.prefixes:
        said = params_of(languages)
    elif languages is not None and languages.source:
        listed = {"additional_special_tokens": source.pieces([*languages.tokens.values()])}
        made[TOKENIZER_CONFIG] |= reader_of(languages, *spec.direction) | listed
    decoding = translator.decoding()
    written = spec.written()
    own = {key: written[key] for key in KEPT if key in written and (source.ours or key != "languages")}
    own |= {BY_SOURCE: True} if decoding.longest is None else {}
    own |= {FINISHED_FIRST: True} if decoding.early_stopping and decoding.finished_first is None else {}
    if own:
        said[keys.PARAMS] = said.get(keys.PARAMS, {}) | {OWN: own}
    made[GENERATION] = generation_config(_search(translator, longest), translator.forbidden)
    notes = lost(spec, limited=False) if source.ours else []
    return HubFiles(made, {"start": target.bos, "end": target.eos, "pad": target.pad}, said, notes)


def _tokenizers(run: Path, translator: Translator, longest: int) -> Files:
    """The files of the tokenizers, and what their reader is told. Raises InputError."""
    source, spec, languages = translator.source, translator.spec, translator.spec.languages
    joint, eos, pad = source is translator.target, translator.target.eos, translator.target.pad
    direction = dict(zip(("source_lang", "target_lang"), spec.direction, strict=True))
    if source.numbers is not None:
        told = {"model_max_length": longest} | _named(source, {"eos": eos, "pad": pad})
        if joint and languages is not None:
            pieces = {name: index for name, index in source.numbers.items() if index not in languages.tokens.values()}
            model = files.read_bytes(run / FAIRSEQ_PIECES, limit=SPM_LIMIT)
            return {FAIRSEQ_PIECES: model, NUMBERS: pieces, TOKENIZER_CONFIG: told}
        made: Files = {name: files.read_bytes(run / name, limit=SPM_LIMIT) for name in (*SPM, NUMBERS)}
        return made | {TOKENIZER_CONFIG: {"tokenizer_class": "MarianTokenizer"} | direction | told}
    if not joint:
        raise InputError("its sides have a tokenizer each, for which the Hub has no words", where=str(run))
    prefixed = languages is not None and bool(languages.prefixes)  # config.json says those
    before, after = ([], [eos]) if prefixed else translator.around
    inner = framed(source, before, after)
    if source.ours:
        inner.normalizer = space_before(source)
        inner.decoder = text_decoder(source, inner.decoder)
    special = source.special
    roles = {"bos": [*before, special.bos][0], "eos": eos, "pad": special.pad, "unk": special.unk, "mask": special.mask}
    cut = spec.longest_source
    most = longest if cut is None else min(longest, cut + sum(map(len, translator.around)))
    made = hub_tokenizer(source, inner, roles, longest=most)
    made[TOKENIZER_CONFIG] |= direction  # as Marian's
    return made


def _search(translator: Translator, longest: int) -> dict[str, Any]:
    """How it searches, in their words."""
    target, decoding = translator.target, translator.decoding()
    return {
        "decoder_start_token_id": target.bos,
        "forced_bos_token_id": next(iter(translator.begin), None),
        "eos_token_id": target.eos,
        "pad_token_id": target.pad,
        "num_beams": decoding.beam,
        "length_penalty": decoding.length_penalty,
        "no_repeat_ngram_size": decoding.no_repeat or None,
        "min_length": decoding.shortest + 1 if decoding.shortest else None,
        "max_length": longest if decoding.longest is None else decoding.longest + 1,
        "forced_eos_token_id": target.eos if decoding.forced_eos else None,
        "renormalize_logits": decoding.renormalise or None,
        "early_stopping": decoding.early_stopping,
    }


def _named(tokenizer: Tokenizer, roles: Mapping[str, int]) -> dict[str, str]:
    """How the vocabulary spells the tokens with a role."""
    known = {**roles, "unk": tokenizer.unk}
    return {f"{role}_token": tokenizer.pieces([index])[0] for role, index in known.items() if index is not None}


HUB = Hub(read_translator, write_translator)
