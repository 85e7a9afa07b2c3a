"""A bare encoder in use."""

from typing import Any

from heedful.run.task import Saved
from heedful.tasks.shared.served import text_facts


def encoder_facts(saved: Saved) -> dict[str, Any]:
    return text_facts(saved, saved.config.embed.context_length)
