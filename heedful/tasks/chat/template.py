"""The chat template of a run: a file beside its weights, as in a folder of the Hub."""

from pathlib import Path

from heedful.data.text.chat_template import QUESTION_ANSWER, ChatTemplate
from heedful.data.tokenizer import EXTRA, Tokenizer
from heedful.errors import InputError, MissingError, OtherTaskError
from heedful.exchange.hub import CHAT, CHAT_SAID, chat_files
from heedful.run.folder import task_name
from heedful.run.tokenizers import read_tokenizers
from heedful.store import files
from heedful.tasks.shared.served import refuse_other

SIMPLEST = "question-answer"
LIMIT = 1 << 22  # bytes of a template
FIX = "heed train chat --data CONVERSATIONS --from it"


def template_in(folder: Path) -> str | None:
    """The source of the template in a folder; None where it has none. Raises InputError for a template that is not a
    string."""
    kept = chat_files(folder)
    if CHAT in kept:
        return str(kept[CHAT].decode(errors="replace"))
    said = kept.get(CHAT_SAID)
    if said is None:
        return None
    if isinstance(said, list):  # several templates, by name
        named = {str(one.get("name")): one.get("template") for one in said if isinstance(one, dict)}
        said = named.get("default")
    if not isinstance(said, str):
        raise InputError("no chat template that is a text", where=str(folder / CHAT_SAID), fix=FIX)
    return said


def template_of(run: Path) -> ChatTemplate:
    """The template of a run; the model is not loaded. Raises OtherTaskError where it has none: the model was not
    trained on conversations; MissingError, InputError or StorageError."""
    name, about = task_name(run)
    refuse_other(about, run, "generate", "conversations")
    source, tokenizers = template_in(run), read_tokenizers(run)
    if source is None:
        what = f"a model for {name!r} without a chat template: it has learnt no conversations (heed train chat --from)"
        raise OtherTaskError(what, where=str(run))
    if tokenizers is None:
        raise MissingError("the model has no tokenizer", where=str(run), fix="get the whole folder from its source")
    return ChatTemplate(source, special_names(tokenizers[0]))


def chosen_template(name: str, start: Path | None) -> str:
    """The source of the template that a recipe names: a file, or by default that of the run to start from, or the
    simplest. Raises InputError or MissingError."""
    if name.endswith(".jinja"):
        if not Path(name).is_file():
            raise MissingError("no such file", where=name, fix="check data.template")
        return files.read_bytes(Path(name), limit=LIMIT).decode(errors="replace")
    if name not in ("", SIMPLEST):
        raise InputError(f"data.template is {name!r}", fix=f"name a .jinja file, or {SIMPLEST}")
    begun = None if name or start is None else template_in(start)
    return QUESTION_ANSWER if begun is None else begun


def controls_in(source: str) -> list[str]:
    """The control tokens in a template, in their order."""
    return [*dict.fromkeys(found[0] for found in EXTRA.finditer(source))]


def special_names(tokenizer: Tokenizer) -> dict[str, str]:
    """The special tokens that a template may use, by name."""
    roles = {"bos": tokenizer.bos, "eos": tokenizer.eos, "pad": tokenizer.special.pad, "unk": tokenizer.unk}
    return {f"{role}_token": tokenizer.pieces([index])[0] for role, index in roles.items() if index is not None}
