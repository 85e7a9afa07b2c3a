"""OpenAI's protocol, with its own client and without."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx
import openai as client
import pytest
import torch
from fastapi import FastAPI

from heedful.data.tokenizer import Tokenizer
from heedful.errors import BusyError
from heedful.serve.app import make_app
from heedful.serve.gate import Rules
from heedful.serve.hosted import StreamedPiece
from heedful.tasks.shared.embed import TextEncoder
from nearly import like
from serving import encoder, hosted, language_model, opened, running, translator
from waiting import becomes

GREEDY: dict[str, Any] = {"model": "lm", "temperature": 0, "max_tokens": 9}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    language_model(folder / "lm")
    translator(folder / "en-de", "en", "de", seed=1)
    translator(folder / "summaries", "article", "summary", scores="rouge", seed=2)
    encoder(folder / "encoder")
    return folder


@pytest.fixture(scope="module")
def app(folder: Path) -> FastAPI:
    return make_app(hosted(*sorted(folder.iterdir())))


@pytest.fixture(scope="module")
def address(app: FastAPI) -> Iterator[str]:
    with running(app) as address:
        yield address


def ask(address: str, route: str, **body: Any) -> httpx.Response:
    return httpx.post(f"{address}/v1/{route}", json=body)


def continued(folder: Path, prompt: str, tokens: int = 9, **settings: Any) -> Any:
    ((made,),) = opened(folder / "lm").generate([prompt], tokens=tokens, **{"temperature": 0.0} | settings)
    return made


def log_softmax(folder: Path, ids: list[int]) -> torch.Tensor:
    """Of what follows each of the tokens, by the model itself."""
    with torch.inference_mode():
        return opened(folder / "lm").model(torch.tensor([ids]))[0].float().log_softmax(-1)


def test_its_client_lists_the_models(theirs: client.OpenAI) -> None:
    found = theirs.models.list().data
    assert [each.id for each in found] == ["en-de", "encoder", "lm", "summaries"]
    assert theirs.models.retrieve("lm") == found[2]
    assert (found[2].object, found[2].owned_by) == ("model", "heedful")
    assert found[2].created > 1_700_000_000


def test_a_model_whose_folder_is_gone_is_told_as_before(folder: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(folder / "lm", tmp_path / "lm")
    with running(make_app(hosted(moved))) as address:
        before = httpx.get(f"{address}/v1/models").json()
        figure = httpx.get(f"{address}/api/models/lm/figure").content
        exact = TextEncoder.load(moved).embed("ba")
        shutil.rmtree(moved)
        (vector,) = ask(address, "embeddings", model="lm", input="ba").json()["data"]
        assert vector["embedding"] == pytest.approx((exact / exact.norm()).tolist(), abs=1e-5), "by the model served"
        (own,) = httpx.post(f"{address}/api/embed", json={"text": "ba"}).json()["vectors"]
        assert own == pytest.approx(exact.tolist(), abs=1e-5)
        assert httpx.get(f"{address}/api/models/lm/figure").content == figure
        assert httpx.get(f"{address}/v1/models").json() == before
        assert httpx.get(f"{address}/v1/models/lm").json() == before["data"][0]
        assert ask(address, "completions", model="lm", prompt="ba", max_tokens=2).status_code == 200


@pytest.mark.parametrize("name", ["none", "../lm", "LM", "é"])
def test_an_unknown_model_is_not_found(theirs: client.OpenAI, name: str) -> None:
    calls = [
        lambda: theirs.completions.create(model=name, prompt="ba"),
        lambda: theirs.chat.completions.create(model=name, messages=[{"role": "user", "content": "ba"}]),
        lambda: theirs.embeddings.create(model=name, input="ba"),
    ]
    for call in calls:
        with pytest.raises(client.NotFoundError) as raised:
            call()
        assert raised.value.code == "model_not_found"
        assert raised.value.param == "model"
        assert f"`{name}`" in raised.value.body["message"]
    with pytest.raises(client.NotFoundError):
        theirs.models.retrieve(name.replace("/", ""))


def test_a_completion(theirs: client.OpenAI, folder: Path) -> None:
    own = continued(folder, "ba de")
    found = theirs.completions.create(prompt="ba de", user="someone", **GREEDY)
    (choice,) = found.choices
    assert (choice.text, choice.finish_reason, choice.index) == (own.text, "length", 0)
    assert found.id.startswith("cmpl-")
    assert (found.object, found.model) == ("text_completion", "lm")
    read = len(opened(folder / "lm").tokenizer.encode_whole(["ba de"])[0])
    assert found.usage is not None
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (read, 9)
    assert found.usage.total_tokens == read + 9
    assert len(theirs.completions.create(model="lm", prompt="ba", temperature=0).choices[0].text) > 0


def test_several_prompts_are_answered_in_their_order(theirs: client.OpenAI, folder: Path) -> None:
    prompts = ["ba de", "", "ko lu ma"]
    found = theirs.completions.create(prompt=prompts, n=2, **GREEDY)
    texts = [continued(folder, prompt).text for prompt in prompts for _ in range(2)]
    assert [choice.text for choice in found.choices] == texts
    assert [choice.index for choice in found.choices] == [*range(6)]


def test_tokens_are_prompts_too(theirs: client.OpenAI, folder: Path) -> None:
    ids = opened(folder / "lm").tokenizer.encode_whole(["ba de", "ko"])
    texts = [continued(folder, prompt).text for prompt in ("ba de", "ko")]
    assert theirs.completions.create(prompt=ids[0], **GREEDY).choices[0].text == texts[0]
    assert [each.text for each in theirs.completions.create(prompt=ids, **GREEDY).choices] == texts
    with pytest.raises(client.BadRequestError, match="prompt: 9999 is no token of this model"):
        theirs.completions.create(prompt=[9999], **GREEDY)


def test_what_is_drawn_depends_on_the_seed_alone(theirs: client.OpenAI, folder: Path) -> None:
    def drawn(**more: Any) -> list[str]:
        found = theirs.completions.create(model="lm", prompt="ba", max_tokens=12, **more)
        return [each.text for each in found.choices]

    own = continued(folder, "ba", tokens=12, temperature=0.9, top_p=0.8, seed=5).text
    assert drawn(seed=5, temperature=0.9, top_p=0.8) == [own]
    penalties = {"temperature": 0.0, "presence_penalty": 0.5, "frequency_penalty": 1.5}
    assert drawn(**penalties) == [continued(folder, "ba", tokens=12, **penalties).text] != drawn(temperature=0.0)
    three = drawn(seed=5, n=3, best_of=3)
    assert three == drawn(seed=5, n=3)
    assert len(set(three)) == 3
    assert drawn(seed=6) != drawn(seed=5)
    assert drawn() != drawn()


def test_a_stop_string_ends_a_text(theirs: client.OpenAI, folder: Path) -> None:
    whole = continued(folder, "ba de", tokens=20).text
    stop = whole[5:7]
    for given in (stop, ["never there", stop]):
        (choice,) = theirs.completions.create(prompt="ba de", stop=given, **GREEDY | {"max_tokens": 20}).choices
        assert (choice.text, choice.finish_reason) == (whole[: whole.index(stop)], "stop")


def test_log_probabilities_are_the_models_own(theirs: client.OpenAI, folder: Path) -> None:
    """Also where the text outgrows the context, which is then begun anew with its last half."""
    model = opened(folder / "lm")
    own = continued(folder, "ba de", tokens=40)
    (choice,) = theirs.completions.create(prompt="ba de", logprobs=3, **GREEDY | {"max_tokens": 40}).choices
    said = choice.logprobs
    assert said is not None
    assert said.token_logprobs == pytest.approx(own.logprobs, abs=1e-4)
    begun = [*model.before, *model.tokenizer.encode_whole(["ba de"])[0]]
    exact = log_softmax(folder, [*begun, *own.tokens[:9]])[len(begun) - 1 :]
    assert len(said.top_logprobs) == 40
    names = [piece.replace("▁", " ") for piece in model.tokenizer.pieces(own.tokens)]
    assert said.tokens == names
    for row, top, token, name in zip(exact, said.top_logprobs, own.tokens, names, strict=False):
        values, indices = row.topk(3)
        assert sorted(top.values(), reverse=True)[:3] == pytest.approx(values.tolist(), abs=1e-5)
        assert top[name] == pytest.approx(float(row[token]), abs=1e-5)
        for index, value in zip(indices.tolist(), values.tolist(), strict=True):
            shown = (model.tokenizer.pieces([index])[0].replace("▁", " "), f"<token {index}>", name)
            assert any(top.get(each) == pytest.approx(value, abs=1e-5) for each in shown)
    assert len(said.text_offset) == len(said.tokens) == 40
    assert said.text_offset == sorted(said.text_offset)


def test_of_a_stop_string_no_token_is_told(theirs: client.OpenAI, folder: Path) -> None:
    whole = continued(folder, "ba de", tokens=20).text
    stop = whole[5:7]
    (choice,) = theirs.completions.create(prompt="ba de", stop=stop, logprobs=0, **GREEDY | {"max_tokens": 20}).choices
    assert choice.logprobs is not None
    assert choice.logprobs.top_logprobs == [None] * len(choice.logprobs.tokens)
    assert "".join(choice.logprobs.tokens).startswith(choice.text)
    assert len("".join(choice.logprobs.tokens[:-1])) < len(choice.text)


@pytest.mark.parametrize("more", [{}, {"echo": True}, {"stop": ["a"]}, {"max_tokens": 0, "echo": True}, {"n": 3}])
def test_log_probabilities_of_a_stream_are_those_of_the_whole(theirs: client.OpenAI, more: dict[str, Any]) -> None:
    asked: dict[str, Any] = GREEDY | {"max_tokens": 30, "logprobs": 2, "seed": 5, "temperature": 0.7} | more
    whole = theirs.completions.create(prompt="ba de", **asked).choices
    texts = ["" for _ in whole]
    columns: list[dict[str, list[Any]]] = [
        {name: [] for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset")} for _ in whole
    ]
    for chunk in theirs.completions.create(prompt="ba de", stream=True, **asked):
        for choice in chunk.choices:
            texts[choice.index] += choice.text
            assert choice.logprobs is not None
            for name, own in columns[choice.index].items():
                own += getattr(choice.logprobs, name)
    for choice, text, found in zip(whole, texts, columns, strict=True):
        assert text == choice.text
        assert choice.logprobs is not None
        assert found == like(choice.logprobs.model_dump())


def test_what_was_told_of_a_stream_is_not_read_again(theirs: client.OpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a stream of a thousand tokens takes minutes, in which the server answers nobody else."""
    pieces, read = Tokenizer.pieces, list[int]()

    def counted(self: Tokenizer, ids: list[int]) -> list[str]:
        read.append(len(ids))
        return pieces(self, ids)

    monkeypatch.setattr(Tokenizer, "pieces", counted)
    asked: dict[str, Any] = GREEDY | {"max_tokens": 60, "logprobs": 0}
    told = [chunk.choices[0].logprobs for chunk in theirs.completions.create(prompt="ba de", stream=True, **asked)]
    assert sum(len(each.tokens) for each in told if each is not None) == 60
    assert max(read) < 20


def test_an_echo_is_the_prompt_and_scores_it(theirs: client.OpenAI, folder: Path) -> None:
    model = opened(folder / "lm")
    prompt = "ba de gi"
    ids = model.tokenizer.encode_whole([prompt])[0]
    exact = log_softmax(folder, [*model.before, *ids])
    first = len(model.before)
    expected = [float(exact[first + i - 1, token]) for i, token in enumerate(ids)]
    for given in (prompt, ids):
        (choice,) = theirs.completions.create(prompt=given, echo=True, logprobs=1, **GREEDY | {"max_tokens": 0}).choices
        assert (choice.text, choice.finish_reason) == (prompt, "length")
        assert choice.logprobs is not None
        assert choice.logprobs.token_logprobs[0] is None
        assert choice.logprobs.token_logprobs[1:] == pytest.approx(expected[1:], abs=1e-5)
        assert "".join(choice.logprobs.tokens) == prompt
        for text, offset in zip(choice.logprobs.tokens, choice.logprobs.text_offset, strict=True):
            assert prompt[offset:].startswith(text)
        for i, top in enumerate(choice.logprobs.top_logprobs[1:], 1):
            assert max(top.values()) == pytest.approx(float(exact[first + i - 1].max()), abs=1e-5)
    (both,) = theirs.completions.create(prompt=prompt, echo=True, logprobs=0, **GREEDY).choices
    assert both.text == prompt + continued(folder, prompt).text
    assert len(both.logprobs.tokens) == len(ids) + 9
    with pytest.raises(client.BadRequestError) as raised:
        theirs.completions.create(prompt="ba " * 40, echo=True, logprobs=0, **GREEDY)
    assert raised.value.code == "context_length_exceeded"


def test_a_stream_is_what_comes_without_one(theirs: client.OpenAI, folder: Path) -> None:
    prompts = ["ba de", "ko"]
    own = [continued(folder, prompt) for prompt in prompts]
    for usage in (True, False):
        options: dict[str, Any] = {"stream_options": {"include_usage": True}} if usage else {}
        texts, ends, told = ["", ""], [None, None], []
        for chunk in theirs.completions.create(prompt=prompts, stream=True, echo=True, **GREEDY, **options):
            assert chunk.object == "text_completion"
            told += [chunk.usage] if chunk.usage else []
            for choice in chunk.choices:
                assert ends[choice.index] is None
                texts[choice.index] += choice.text
                ends[choice.index] = choice.finish_reason
        assert texts == [prompt + each.text for prompt, each in zip(prompts, own, strict=True)]
        assert ends == ["length", "length"]
        assert [each.completion_tokens for each in told] == ([18] if usage else [])
    raw = ask(str(theirs.base_url).removesuffix("/v1/"), "completions", prompt="ba", stream=True, **GREEDY)
    assert raw.headers["content-type"].startswith("text/event-stream")
    assert raw.headers["x-accel-buffering"] == "no"
    assert raw.text.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("streamed", [True, False])
def test_whoever_leaves_ends_the_work(folder: Path, monkeypatch: pytest.MonkeyPatch, streamed: bool) -> None:
    models = hosted(folder / "lm")
    begun, closed = [], []

    async def endless(*given: object) -> AsyncIterator[StreamedPiece]:
        begun.append(True)
        try:
            while True:
                yield StreamedPiece("ba", 7)
                await asyncio.sleep(0.001)
        finally:
            closed.append(True)

    async def left(address: str) -> None:
        async with client.AsyncOpenAI(base_url=f"{address}/v1", api_key="any", max_retries=0) as theirs:
            asked = asyncio.create_task(theirs.completions.create(prompt="ba", n=2, **GREEDY))
            assert await asyncio.to_thread(becomes, lambda: len(begun) == 2)
            asked.cancel()
            with suppress(asyncio.CancelledError):
                await asked

    monkeypatch.setattr(models["lm"], "write", endless)
    app = make_app(models)
    with running(app) as address, httpx.Client() as other:
        with closing(client.OpenAI(base_url=f"{address}/v1", api_key="any", max_retries=0)) as theirs:
            if streamed:
                with theirs.completions.create(prompt="ba", stream=True, n=2, **GREEDY) as stream:
                    assert next(iter(stream)).choices[0].text == "ba"
            else:
                asyncio.run(left(address))
        assert becomes(lambda: len(closed) == 2)
        assert len(begun) == 2
        assert other.get(f"{address}/v1/models").status_code == 200


def test_errors_of_the_server_are_told_also_within_a_stream(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = hosted(folder / "lm")
    pieces: list[StreamedPiece] = []

    async def busy(*given: object) -> AsyncIterator[StreamedPiece]:
        for piece in pieces:
            yield piece
        raise BusyError("enough to do", fix="ask again later")

    monkeypatch.setattr(models["lm"], "write", busy)
    app = make_app(models)
    with (
        running(app) as address,
        closing(client.OpenAI(base_url=f"{address}/v1", api_key="a", max_retries=0)) as theirs,
    ):
        for stream in (False, True):
            with pytest.raises(client.RateLimitError, match="enough to do") as raised:
                theirs.completions.create(prompt="ba", stream=stream, **GREEDY)
            assert raised.value.code == "rate_limit_exceeded"
        pieces.append(StreamedPiece("ba", 7))
        chunks = iter(theirs.completions.create(prompt="ba", stream=True, **GREEDY))
        assert next(chunks).choices[0].text == "ba"
        with pytest.raises(client.APIError, match="enough to do"):
            next(chunks)


CHAT: Any = [
    {"role": "system", "content": "be short"},
    {"role": "user", "content": "ko"},
    {"role": "assistant", "content": "lu", "tool_calls": None},
    {"role": "user", "content": [{"type": "text", "text": "ba de. "}, {"type": "text", "text": "Gi"}]},
]


def test_a_chat_translates_the_last_message(theirs: client.OpenAI, folder: Path) -> None:
    own = opened(folder / "en-de")
    found = theirs.chat.completions.create(model="en-de", messages=CHAT, temperature=0.7, seed=3, tools=[])
    (choice,) = found.choices
    assert choice.message.content == f"{own.translate('ba de.')} {own.translate('Gi')}"
    assert (choice.message.role, choice.finish_reason, found.object) == ("assistant", "stop", "chat.completion")
    assert found.usage is not None
    assert found.usage.prompt_tokens == len(own.source.encode(["ba de. Gi"])[0])
    summary = theirs.chat.completions.create(model="summaries", messages=CHAT).choices[0].message.content
    assert summary == opened(folder / "summaries").translate("ba de. Gi")


def test_a_chat_gives_the_n_best_up_to_a_limit_and_a_stop(theirs: client.OpenAI, folder: Path) -> None:
    own = opened(folder / "en-de")
    said: Any = [{"role": "user", "content": "ba de gi"}]
    (best,) = own.search(["ba de gi"], n_best=3, beam=3)
    three = theirs.chat.completions.create(model="en-de", messages=said, n=3).choices
    assert [each.message.content for each in three] == [text for text, _ in best.hypotheses]
    whole = own.translate("ba de gi")
    ids = own.target.encode([whole])[0]
    for limit in ({"max_tokens": 3}, {"max_completion_tokens": 3}):
        cut = theirs.chat.completions.create(model="en-de", messages=said, **limit)
        assert cut.choices[0].message.content == own.target.decode(ids[:3])
        assert cut.choices[0].finish_reason == "length"
        assert cut.usage.completion_tokens == 3
    stopped = theirs.chat.completions.create(model="en-de", messages=said, stop=whole[4:6])
    kept = whole[: whole.index(whole[4:6])]
    assert stopped.choices[0].message.content == kept
    assert stopped.usage.completion_tokens == len(own.target.encode([kept])[0]) < len(ids)


def test_a_chat_streams(theirs: client.OpenAI, folder: Path) -> None:
    said: Any = [{"role": "user", "content": "ba de gi"}]
    text, ends, usage = "", [], []
    for chunk in theirs.chat.completions.create(
        model="en-de", messages=said, stream=True, stream_options={"include_usage": True}
    ):
        usage += [chunk.usage] if chunk.usage else []
        for choice in chunk.choices:
            text += choice.delta.content or ""
            ends += [choice.finish_reason] if choice.finish_reason else []
    assert text == opened(folder / "en-de").translate("ba de gi")
    assert ends == ["stop"]
    assert usage[0].completion_tokens > 0


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"model": "lm"}, "has not learnt to chat: use /v1/completions"),
        ({"model": "encoder"}, "has not learnt to chat"),
        ({"messages": []}, "messages"),
        ({"messages": CHAT[:1]}, "there is nothing to translate"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "a"}}]}]}, "messages"),
        ({"tools": [{"type": "function"}]}, "tools is not served here"),
        ({"response_format": {"type": "json_object"}}, "response_format is not served here"),
        ({"logprobs": True}, "logprobs is not served here"),
        ({"frequency_penalty": 0.5}, "frequency_penalty is not served by a translator"),
        ({"n": 65}, "n: "),
        ({"max_tokens": 0}, "max_tokens"),
        ({"tone": "kind"}, "tone: there is no such key"),
        ({"messages": [{"role": "user", "content": "a" * 50_001}]}, "50,000 characters"),
    ],
)
def test_a_chat_that_cannot_be_answered_is_refused(theirs: client.OpenAI, body: dict[str, Any], word: str) -> None:
    with pytest.raises(client.BadRequestError) as raised:
        theirs.chat.completions.create(model="en-de", messages=CHAT, extra_body=body)
    assert word in raised.value.body["message"]
    assert raised.value.type == "invalid_request_error"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"model": "en-de"}, "model"),
        ({"suffix": "ba"}, "suffix"),
        ({"best_of": 2}, "best_of"),
        ({"presence_penalty": 2.5}, "presence_penalty"),
        ({"frequency_penalty": -2.5}, "frequency_penalty"),
        ({"logit_bias": {"5": 3}}, "logit_bias"),
        ({"logprobs": 21}, "logprobs"),
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": "1"}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": 70_000}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"seed": 2**63}, "seed"),
        ({"n": 0}, "n"),
        ({"n": 64, "prompt": ["a"] * 5}, "n"),
        ({"stop": ""}, "stop"),
        ({"stop": ["a"] * 17}, "stop"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [[]]}, "prompt"),
        ({"prompt": [5, "ba"]}, "prompt"),
        ({"prompt": [-1]}, "prompt"),
        ({"prompt": None}, "prompt"),
        ({"prompt": ["a"] * 257}, "prompt"),
        ({"maximum_tokens": 3}, "maximum_tokens"),
    ],
)
def test_a_completion_that_cannot_be_is_refused(address: str, body: dict[str, Any], param: str) -> None:
    answer = ask(address, "completions", **{"model": "lm", "prompt": "ba"} | body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["param"] == param
    assert error["type"] == "invalid_request_error"
    assert "\n" not in error["message"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        b'{"model": "lm", "prompt": "\\ud800"}',
        b'{"model": "lm", "prompt": NaN}',
    ],
)
def test_malformed_bodies_are_refused(address: str, content: bytes) -> None:
    for route in ("completions", "chat/completions", "embeddings"):
        answer = httpx.post(f"{address}/v1/{route}", content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["message"]


def test_without_the_key_nothing_is_answered(folder: Path) -> None:
    app = make_app(hosted(folder / "en-de"), rules=Rules(key="sesam"))
    said: Any = [{"role": "user", "content": "ba"}]
    with running(app) as address:
        for key in ("sesam", "sesame"):
            with closing(client.OpenAI(base_url=f"{address}/v1", api_key=key, max_retries=0)) as theirs:
                calls = [
                    lambda theirs=theirs: theirs.models.list(),
                    lambda theirs=theirs: theirs.models.retrieve("en-de"),
                    lambda theirs=theirs: theirs.chat.completions.create(model="en-de", messages=said),
                    lambda theirs=theirs: theirs.embeddings.create(model="en-de", input="ba"),
                ]
                for call in calls:
                    if key == "sesam":
                        assert call()
                        continue
                    with pytest.raises(client.AuthenticationError) as raised:
                        call()
                    assert raised.value.code == "invalid_api_key"
        bare = httpx.get(f"{address}/v1/models")
        assert (bare.status_code, bare.json()["error"]["code"]) == (401, "invalid_api_key")
        assert json.loads(bare.text)["error"]["type"] == "invalid_request_error"
