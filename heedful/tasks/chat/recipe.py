"""The recipe of a chat model."""

from typing import ClassVar, Literal

from pydantic import Field

from heedful.run.recipe import Presets
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import SmoothedTrain, TextRecipe, TokenizedData


class ConversationData(TokenizedData):
    """Conversations, and how they become rows of tokens."""

    template: str = Field(
        "",
        description="how a conversation is written out: a .jinja file, or question-answer (question <EOQ> answer); by "
        "default as the model to begin with has it, or question-answer",
    )


class ChatRecipe(TextRecipe):
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.presets:LANGUAGE_MODELS")

    task: Literal["chat"] = "chat"
    preset: str = "llama-nano"
    data: ConversationData = ConversationData()
    train: SmoothedTrain = SmoothedTrain()
