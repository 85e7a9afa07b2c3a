"""What is told of a folder by which a text is translated as it stands: what the run itself does beside."""

from collections.abc import Mapping
from typing import Any

from heedful.tasks.shared.lengths import KEPT
from heedful.tasks.translate.capitals import capitals_lost
from heedful.tasks.translate.exchange.hub_languages import asked_for_alone
from heedful.tasks.translate.languages import languages_of


def lost(about: Mapping[str, Any], *, limited: bool = True) -> list[str]:
    """`about`: the run's task.json. `limited`: whether what is said ends there where the run would end it."""
    does: list[str] = []
    if KEPT in about and "noise" not in about and languages_of(about) is not None:
        does.append("keeps addresses and placeholders")
        does.append(f"translates what is longer than {about[KEPT]['longest']} tokens in parts")
    if not limited and about.get("decode", {}).get("longest") is None:
        does.append("says at most twice a source's tokens and 12 more, and of that what has ended first")
    told = [f"there a text is read as it stands: the run itself {'; it '.join(does)}"] if KEPT in about and does else []
    if not limited and (most := about.get("longest_source")) is not None:
        told.append(
            f"there a text is read as a whole without truncation=True: the run itself reads {most} tokens of it"
        )
    return [*told, *asked_for_alone(about), *capitals_lost(about)]
