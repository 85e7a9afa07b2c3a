"""A chat model over HTTP: by OpenAI's own client, and by our own route. What it answers is what it answers alone."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import openai as client
import pytest
import torch

import heedful
from heedful.serve.chats import without
from nearly import like
from serving import chat_model, language_model

SYSTEM = {"role": "system", "content": "be kind"}
TALK: Any = [SYSTEM, {"role": "user", "content": "ba de"}, {"role": "assistant", "content": "ko"}]
TALK += [{"role": "user", "content": "gi <EOQ>"}]
GREEDY: dict[str, Any] = {"model": "talker", "temperature": 0, "max_tokens": 6}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    chat_model(folder / "talker", context=64)
    language_model(folder / "lm")
    return folder


@pytest.fixture(scope="module")
def own(folder: Path) -> Any:
    return heedful.load(folder / "talker", heedful.ChatModel)


def test_it_answers_a_conversation(theirs: client.OpenAI, own: Any) -> None:
    found = theirs.chat.completions.create(messages=TALK, **GREEDY)
    reply, (choice,) = own.chat(TALK, tokens=6, temperature=0.0), found.choices
    assert (choice.message.role, choice.message.content) == ("assistant", reply.content)
    assert choice.finish_reason == reply.finish
    assert found.usage is not None
    assert found.usage.prompt_tokens == len(own.written.prompt(TALK))
    assert found.usage.completion_tokens == len(reply.tokens)
    assert "talker" in [model.id for model in theirs.models.list()]
    by_developer = [{"role": "developer", "content": "be kind"}, *TALK[1:]]
    again = theirs.chat.completions.create(messages=by_developer, **GREEDY)
    assert again.choices[0].message.content == reply.content


def test_it_streams_stops_and_draws(theirs: client.OpenAI, own: Any) -> None:
    reply = own.chat(TALK, tokens=6, temperature=0.0)
    text, ends, usage = "", [], []
    more: Any = {"stream": True, "stream_options": {"include_usage": True}}
    for chunk in theirs.chat.completions.create(messages=TALK, **GREEDY, **more):
        usage += [chunk.usage] if chunk.usage else []
        for choice in chunk.choices:
            text += choice.delta.content or ""
            ends += [choice.finish_reason] if choice.finish_reason else []
    assert (text, ends, usage[0].completion_tokens) == (reply.content, [reply.finish], len(reply.tokens))
    stop = reply.content[3:5]
    stopped = theirs.chat.completions.create(messages=TALK, stop=stop, **GREEDY).choices[0]
    assert stopped.message.content == reply.content[: reply.content.index(stop)]
    drawn: dict[str, Any] = GREEDY | {"temperature": 1.0, "seed": 3}
    three, one = (theirs.chat.completions.create(messages=TALK, n=n, **drawn).choices for n in (3, 1))
    said = [choice.message.content for choice in three]
    assert len({*said}) > 1
    assert said[0] == one[0].message.content == own.chat(TALK, tokens=6, temperature=1.0, seed=3).content


def test_log_probabilities_are_the_models_own(theirs: client.OpenAI, own: Any) -> None:
    (choice,) = theirs.chat.completions.create(messages=TALK, logprobs=True, top_logprobs=2, **GREEDY).choices
    reply = own.chat(TALK, tokens=6, temperature=0.0)
    content = choice.logprobs.content
    assert [each.logprob for each in content] == pytest.approx(reply.logprobs, abs=1e-4)
    ids = own.written.prompt(TALK)
    with torch.inference_mode():
        logits = own.model(torch.tensor([[*ids, *reply.tokens[:-1]]]))[0, len(ids) - 1 :].log_softmax(-1)
    for each, row in zip(content, logits, strict=True):
        assert [one.logprob for one in each.top_logprobs] == pytest.approx(row.topk(2).values.tolist(), abs=1e-4)
        assert bytes(each.bytes).decode() == each.token
    asked: dict[str, Any] = GREEDY | {"logprobs": True, "top_logprobs": 2, "stream": True}
    parts = [chunk.choices[0].logprobs for chunk in theirs.chat.completions.create(messages=TALK, **asked)]
    streamed = [each for part in parts if part is not None for each in part.content]
    assert [each.model_dump() for each in streamed] == like([each.model_dump() for each in content])


@pytest.mark.parametrize("seed", range(4))
def test_of_a_stop_string_no_token_is_told(theirs: client.OpenAI, own: Any, seed: int) -> None:
    asked: dict[str, Any] = GREEDY | {"max_tokens": 20, "temperature": 1.0, "seed": seed, "logprobs": True}
    whole = theirs.chat.completions.create(messages=TALK, **asked).choices[0].message.content or ""
    (choice,) = theirs.chat.completions.create(messages=TALK, stop=whole[5:7], **asked).choices
    assert choice.logprobs is not None
    content, text = choice.logprobs.content or [], choice.message.content or ""
    assert (text, choice.finish_reason) == (whole[: whole.index(whole[5:7])], "stop")
    said = [re.sub("<0x..>", "", each.token) for each in content]  # parts of a character
    lead = own.written.lead if "".join(said).startswith(own.written.lead) else ""
    assert "".join(said).startswith(lead + text)
    assert len("".join(said[:-1])) < len(lead + text)
    chunks = theirs.chat.completions.create(messages=TALK, stop=whole[5:7], stream=True, **asked)
    parts = [chunk.choices[0].logprobs for chunk in chunks]
    streamed = [each for part in parts if part is not None for each in part.content or []]
    assert [each.model_dump() for each in streamed] == like([each.model_dump() for each in content])


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"messages": TALK[:3]}, "nothing to answer"),
        ({"messages": [{"role": "user", "content": " "}]}, "an empty turn"),
        ({"messages": [{"role": "user", "content": "ba " * 200}]}, "tokens of the last question"),
        ({"messages": [{"role": "tool", "content": "a"}]}, "cannot stand here"),
        ({"top_logprobs": 2}, "top_logprobs is for logprobs"),
        ({"model": "lm"}, "has not learnt to chat: use /v1/completions"),
    ],
)
def test_what_cannot_be_answered_is_refused(theirs: client.OpenAI, body: dict[str, Any], word: str) -> None:
    with pytest.raises(client.BadRequestError) as raised:
        theirs.chat.completions.create(messages=TALK, **GREEDY, extra_body=body)
    assert word in raised.value.body["message"]  # type: ignore[index]
    assert (raised.value.code == "context_length_exceeded") == ("tokens of the last" in word)


def test_it_continues_texts_too(theirs: client.OpenAI, own: Any) -> None:
    found = theirs.completions.create(prompt="ba de", **GREEDY).choices[0].text
    ((alone,),) = own.generate(["ba de"], tokens=6, temperature=0.0)
    assert found == alone.text


def ask(address: str, **body: Any) -> httpx.Response:
    return httpx.post(f"{address}/api/chat", json=body)


def test_our_own_route(address: str, own: Any) -> None:
    options = {"tokens": 6, "sampling": {"temperature": 0.0}}
    reply = own.chat(TALK, tokens=6, temperature=0.0)
    found = ask(address, model="talker", messages=TALK, options=options)
    assert found.json() == {"model": "talker", "answers": [reply.record()]}
    assert ask(address, messages=TALK[1:], system="be kind", options=options).json() == found.json()
    alone = own.chat("ba de", tokens=6, temperature=0.0).record()
    assert ask(address, text="ba de", options=options).json()["answers"] == [alone]
    streamed = ask(address, messages=TALK, options=options, stream=True).text.split("\n\n")
    events = [json.loads(event.removeprefix("data: ")) for event in streamed if event and "[DONE]" not in event]
    assert "".join(event["text"] for event in events) == reply.content
    assert [event["token"] for event in events if event["token"] is not None] == reply.tokens
    assert events[-1]["finish"] == reply.finish


def test_an_answer_goes_on_from_other_tokens(address: str, own: Any) -> None:
    """As a greedy search would, had it said these."""
    options = {"tokens": 6, "sampling": {"temperature": 0.0}}
    reply = own.chat(TALK, tokens=6, temperature=0.0)
    (again,) = ask(address, messages=TALK, options=options, begun=reply.tokens[:3]).json()["answers"]
    assert again["tokens"] == reply.tokens[3:]
    assert ask(address, messages=TALK, options=options, begun=[10**6]).status_code == 400
    assert ask(address, messages=TALK, options=options, begun=[5] * 60).status_code == 400


def test_the_steps_of_an_answer(address: str, own: Any) -> None:
    """What is GPT ? <EOQ> A ..., token by token."""
    body = {"model": "talker", "text": "ba de", "options": {"most": 4}}
    (found,) = httpx.post(f"{address}/api/steps", json=body).json()["answers"]
    reply = own.chat("ba de", tokens=4, temperature=0.0)
    said = [step["said"]["token"] for step in found["steps"]]
    assert said[: len(reply.tokens)] == reply.tokens
    assert found["text"].removeprefix(" ") == reply.content
    logprobs = [step["total"] for step in found["steps"]]
    assert logprobs[len(reply.tokens) - 1] == pytest.approx(sum(reply.logprobs), abs=1e-3)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": []},
        {"messages": TALK, "text": "a"},
        {"messages": [{"content": "a"}]},
        {"messages": [{"role": "user", "content": 3}]},
        {"messages": TALK, "tone": "kind"},
        {"inputs": ["a", "b"]},
    ],
)
def test_a_body_that_is_not_right_is_refused(address: str, body: dict[str, Any]) -> None:
    assert ask(address, model="talker", **body).status_code == 422


@pytest.mark.parametrize("number", [0, 2])
def test_a_message_without_a_text_is_refused(address: str, number: int) -> None:
    talk = [turn | {"content": None} if i == number else turn for i, turn in enumerate(TALK[1:])]
    found = ask(address, model="talker", messages=talk)
    assert (found.status_code, "content of a message" in found.json()["error"]["message"]) == (400, True)
    calls = [*TALK[1:-1], TALK[-1] | {"content": None, "tool_calls": ["a"]}]
    assert ask(address, model="talker", messages=calls).status_code == 400


def test_blanks_before_an_answer_are_held_back() -> None:
    assert without(" ", " a") == ("a", "")
    assert without(" ", "") == ("", " ")
    assert without("\n\n", "\n") == ("", "\n")
    assert without(" ", "a") == ("a", "")
    assert without("", " a") == (" a", "")
