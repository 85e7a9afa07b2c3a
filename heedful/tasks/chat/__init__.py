"""Conversations: a language model that has learnt to answer, turn by turn (Ouyang et al. 2022, step 1)."""

from dataclasses import replace

from heedful.run.task import Lazy
from heedful.tasks.generate import GENERATE

CHAT = replace(
    GENERATE,
    name="chat",
    data="conversations (messages, ShareGPT, Alpaca, questions with answers)",
    does="answers in a conversation",
    example="What is GPT ?",
    counted="tokens of answers",
    headline=("perplexity",),
    recipe=Lazy("heedful.tasks.chat.recipe:ChatRecipe"),
    job=Lazy("heedful.tasks.chat.train:ChatJob"),
    prepares=Lazy("heedful.tasks.chat.prepared:preparation"),
    batch=Lazy("heedful.tasks.shared.shapes:of_text"),
    sized=None,
    served=Lazy("heedful.tasks.chat.use:ChatModel"),
    asks={
        "chat": Lazy("heedful.tasks.chat.use:ASK"),
        **GENERATE.asks,
        "steps": Lazy("heedful.tasks.chat.steps:ASK"),
    },
    converses="chat",
    laws=Lazy("heedful.tasks.chat.laws:chat_laws"),
    evaluate=Lazy("heedful.tasks.chat.use:score_chat"),
    eval_options=Lazy("heedful.tasks.chat.options:ChatScoring"),
    commands=Lazy("heedful.tasks.chat.cli:COMMANDS"),
    engines={},
    saved_as="generate",
    marked="chat",
    uses=("generate",),
)
