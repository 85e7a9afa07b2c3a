"""The requests of OpenAI's protocol, and their bounds."""

from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from heedful.serve.public import Name, RequestBody

MOST_CHARACTERS = 8 * 1024 * 1024
MOST_TOKENS = 65_536  # of an answer
MOST_TEXTS = 256  # prompts, and inputs of embeddings
MOST_CHOICES = 64
MOST_TOP = 20
LARGEST_SEED = 2**63 - 1

Text = Annotated[str, Field(max_length=MOST_CHARACTERS)]
# Of a list that is wrong, the first fault is enough: all of them would take seconds.
Tokens = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1, max_length=200_000, fail_fast=True)]
Texts = Annotated[list[Text], Field(min_length=1, max_length=MOST_TEXTS, fail_fast=True)]
Rows = Annotated[list[Tokens], Field(min_length=1, max_length=MOST_TEXTS, fail_fast=True)]
StopText = Annotated[str, Field(min_length=1, max_length=200)]  # each step looks for all of them
StopTexts = Annotated[list[StopText], Field(max_length=16, fail_fast=True)]
Stop = StopText | StopTexts
Count = Annotated[int, Field(ge=1, le=MOST_TOKENS)]

DRAWING = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
NOT_SENT_ON = {
    "user": "names whoever asks",
    "safety_identifier": "names whoever asks",
    "metadata": "labels for their own pages",
    "store": "nothing is stored here",
    "service_tier": "there is one",
    "prompt_cache_key": "changes how quickly they answer",
}


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    include_usage: bool = False
    include_obfuscation: bool = False  # would only pad the answers


class GenerationRequest(RequestBody):
    """What completions and chats have in common."""

    model: Name
    n: Annotated[int, Field(ge=1, le=MOST_CHOICES)] | None = None
    seed: Annotated[int, Field(ge=-LARGEST_SEED - 1, le=LARGEST_SEED)] | None = None
    stop: Stop | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None

    @property
    def sampling(self) -> dict[str, Any]:
        """The sampling settings that were given, without the seed."""
        said = {name: getattr(self, name) for name in DRAWING}
        return {name: float(value) for name, value in said.items() if value is not None}

    @property
    def stops(self) -> tuple[str, ...]:
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    @property
    def tells_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage


class CompletionRequest(GenerationRequest):
    """What `/v1/completions` is asked. `best_of` must be `n`: no more are made than are handed over."""

    IGNORED: ClassVar = NOT_SENT_ON
    ONLY: ClassVar = {"suffix": ("",), "logit_bias": ({},)}

    prompt: Text | Tokens | Texts | Rows
    max_tokens: Annotated[int, Field(ge=0, le=MOST_TOKENS)] | None = None
    best_of: Annotated[int, Field(ge=1, le=MOST_CHOICES)] | None = None
    echo: bool | None = None
    logprobs: Annotated[int, Field(ge=0, le=MOST_TOP)] | None = None

    @property
    def prompts(self) -> list[str | list[int]]:
        if isinstance(self.prompt, str):
            return [self.prompt]
        if isinstance(self.prompt[0], int):
            return [self.prompt]
        return [*cast(list[str | list[int]], self.prompt)]


class ContentPart(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["text"]
    text: Text


class ChatMessage(BaseModel):
    """Of which a translator reads the content of the last by "user", and a chat model role and content of each; what
    else may stand in others is not read."""

    model_config = ConfigDict(extra="ignore", strict=True)

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Text | Annotated[list[ContentPart], Field(max_length=MOST_TEXTS)] | None = None

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.content) if isinstance(self.content, list) else self.content or ""


class ChatRequest(GenerationRequest):
    """What `/v1/chat/completions` is asked. A translator searches and draws nothing: `temperature`, `top_p` and `seed`
    are accepted, as chat programs always send them, and change nothing; `n` are its n best, and it tells no
    `logprobs`. `to` and `from_language` are ours: of a translator of several languages, those that are asked for."""

    IGNORED: ClassVar = NOT_SENT_ON | {
        "parallel_tool_calls": "no tools are called",
        "reasoning_effort": "for models that reason",
        "verbosity": "a translation is as long as it is",
    }
    ONLY: ClassVar = {
        "logit_bias": ({},),
        "tools": ([],),
        "tool_choice": ("none", "auto"),
        "functions": ([],),
        "function_call": ("none", "auto"),
        "response_format": ({"type": "text"},),
        "modalities": (["text"],),
        "audio": (),
        "prediction": (),
        "web_search_options": (),
    }

    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=4096)]
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MOST_TOP)] | None = None
    to: Name | None = None
    from_language: Name | None = None

    @property
    def most_tokens(self) -> int:
        """Of an answer."""
        return self.max_completion_tokens or self.max_tokens or MOST_TOKENS


class EmbeddingRequest(RequestBody):
    """What `/v1/embeddings` is asked. `dimensions` must be what the model has."""

    IGNORED: ClassVar = NOT_SENT_ON

    model: Name
    input: Text | Tokens | Texts | Rows
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
