"""All tasks: a row each, and nothing else names one."""

from collections.abc import Mapping

from heedful.run.task import Task
from heedful.tasks.answer import ANSWER
from heedful.tasks.classify import CLASSIFY
from heedful.tasks.classify_images import CLASSIFY_IMAGES
from heedful.tasks.denoise import DENOISE
from heedful.tasks.detect import DETECT
from heedful.tasks.encode import ENCODE
from heedful.tasks.fill import FILL
from heedful.tasks.generate import GENERATE
from heedful.tasks.match import MATCH
from heedful.tasks.paint import PAINT
from heedful.tasks.parse import PARSE
from heedful.tasks.segment import SEGMENT
from heedful.tasks.summarise import SUMMARISE
from heedful.tasks.tag import TAG
from heedful.tasks.translate import TRANSLATE

TASKS: Mapping[str, Task] = {
    row.name: row
    for row in (
        TRANSLATE,
        SUMMARISE,
        GENERATE,
        CLASSIFY,
        TAG,
        ANSWER,
        FILL,
        DENOISE,
        PARSE,
        CLASSIFY_IMAGES,
        DETECT,
        SEGMENT,
        MATCH,
        PAINT,
        ENCODE,
    )
}


DEFAULT = TRANSLATE.name  # where a recipe names no task


def trained() -> dict[str, Task]:
    """Those of `heed train`."""
    return {name: row for name, row in TASKS.items() if row.job is not None}
