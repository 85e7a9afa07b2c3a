"""What is told of a folder by which a text is translated as it stands: what the run itself does beside."""

from heedful.tasks.translate.exchange.hub_languages import asked_for_alone
from heedful.tasks.translate.spec import TranslatorSpec


def lost(spec: TranslatorSpec, *, limited: bool = True) -> list[str]:
    """Of a run with this `spec`. `limited`: whether what is said ends there where the run would end it."""
    does: list[str] = []
    longest = spec.longest_learnt
    if longest is not None and spec.noise is None and spec.language_pair is not None:
        does.append("keeps addresses and placeholders")
        does.append(f"translates what is longer than {longest} tokens in parts")
    if not limited and spec.longest_search is None:
        does.append("says at most twice a source's tokens and 12 more, and of that what has ended first")
    told = (
        [f"there a text is read as it stands: the run itself {'; it '.join(does)}"]
        if longest is not None and does
        else []
    )
    if not limited and (most := spec.longest_source) is not None:
        told.append(
            f"there a text is read as a whole without truncation=True: the run itself reads {most} tokens of it"
        )
    told += asked_for_alone(spec)
    if spec.reads_capitals is False:
        told.append("there a text in CAPITALS is read as it is: the run itself reads it in small letters")
    return told
