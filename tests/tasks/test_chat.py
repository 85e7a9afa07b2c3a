"""A chat model from its conversations to its answers: only what the assistant says is learnt, and what it answers is
what the same weights say elsewhere."""

import inspect
import json
import shutil
from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import heedful
from heedful.data.batches import pack_texts
from heedful.data.parts import Parts
from heedful.data.text.chat_template import QUESTION_ANSWER
from heedful.errors import InputError, MissingError, OtherTaskError
from heedful.run.events import Finished
from heedful.tasks.chat.layout import fitted_prompt, learnable
from heedful.tasks.chat.train import ChatJob
from heedful.tasks.chat.use import ChatModel, messages_in
from heedful.tasks.generate.losses import next_token_loss
from heedful.tasks.recipes import build
from heedful.verbs.check import check
from heedful.verbs.exchange import export_model, import_model
from heedful.verbs.train import train
from heedful.verbs.use import ask
from hub import gpt2_folder


def turn(role, content):
    return {"role": role, "content": content}


def talk(question, answer):
    return (turn("user", question), turn("assistant", answer))


WORDS = ["red", "blue", "green", "black", "white", "brown", "pink", "grey"]
TALKS = [talk(f"say {word} {n}", f"{word} {n}") for n in range(9) for word in WORDS]
CORPUS = Parts(TALKS[8:], TALKS[:8], {"test": TALKS[:4]}, "made", (), ())
SMALL = {"d_model": 32, "n_heads": 2, "kv_heads": 2, "n_layers": 2, "d_ff": 64, "context_length": 40}
PLAN = {"steps": 40, "eval_every": 20, "tokens": 400, "precision": "fp32", "lr": 0.02}
SYSTEM = turn("system", "Be kind.")


def recipe(**sections):
    base = {"task": "chat", "data": {"tokenizer": "chars"}, "train": PLAN, "preset": "llama-nano", "model": SMALL}
    return build({**base, **sections}, where="test")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("chat") / "run"
    events = list(train(recipe(), out, corpus=CORPUS))
    assert isinstance(events[-1], Finished)
    return out, events


@pytest.fixture(scope="module")
def model(run):
    return heedful.load(run[0], heedful.ChatModel)


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("imported")
    gpt2_folder(folder / "theirs")
    import_model(folder / "theirs", folder / "run")
    return folder / "run"


def test_a_run_folder_is_complete(run, model):
    out, events = run
    assert (out / "chat_template.jinja").read_text() == QUESTION_ANSWER
    about = json.loads((out / "task.json").read_text())
    eoq = model.tokenizer.extra["<EOQ>"]
    assert about == {"task": "generate", "chat": True, "before": [], "end": 3, "forbidden": [0, 1, 2, eoq]}
    assert events[-1].scores["test"].keys() == {"loss", "perplexity", "chrf", "exact"}
    card = (out / "README.md").read_text()
    for words in ("64 conversations", "nats a token of answers", "made up", "heed chat", "refuses anything", "zorbel"):
        assert words in card
    assert "say red 0\n    " in (out / "samples" / "step-40.txt").read_text()


def test_it_learns_answers_and_their_ends_alone(model):
    job = ChatJob(recipe(), CORPUS)
    for batch in job.task(model.model).batches(0, model.model):
        assert batch.tokens.shape[1] == 40
        learnt = batch.following[batch.learnt]
        assert job.tokenizer.extra["<EOQ>"] not in learnt
        ends, answers = (learnt == 3).sum(), batch.segments.amax(1).sum()
        assert ends == answers
        text = job.tokenizer.decode(learnt.tolist())
        assert "say" not in text


def test_the_loss_of_packed_conversations_is_that_of_each_alone(model):
    texts = [model.written.learning(own) for own in TALKS[:6]]

    def loss(own, rows):
        batches = pack_texts(own, range(len(own)), row=40, rows=rows)
        found = [next_token_loss(model.model, batch, across=False) for batch in batches]
        return sum(float(each.total) for each in found), sum(each.count for each in found)

    with torch.inference_mode():
        together, alone = loss(texts, 2), [loss([text], 1) for text in texts]
    assert together == pytest.approx(tuple(sum(each) for each in zip(*alone, strict=True)), rel=1e-5)
    found = model.evaluate_answers(TALKS[:6]).scores
    assert found["loss"] == pytest.approx(together[0] / together[1], rel=1e-5)


def test_what_a_conversation_costs_is_what_its_answer_is_likely(model):
    """The loss is of the answer given the question, token by token, as decoding meets them."""
    ((question, answer),) = TALKS[:1]
    ids, text = model.written.prompt([question]), model.written.learning([question, answer])
    own = text.ids[len(ids) :]
    with torch.inference_mode():
        logits = model.model(torch.tensor([text.ids[:-1]])).log_softmax(-1)[0, len(ids) - 1 :]
    nats = -float(logits[range(len(own)), own].sum())
    found = model.evaluate_answers([(question, answer)]).scores
    assert found["loss"] * found["tokens"] == pytest.approx(nats, rel=1e-4)


def test_it_answers_as_transformers_does(model, run, tmp_path):
    export_model(run[0], tmp_path / "out")
    assert (tmp_path / "out" / "chat_template.jinja").read_bytes() == (run[0] / "chat_template.jinja").read_bytes()
    theirs, words = (kind.from_pretrained(tmp_path / "out") for kind in (AutoModelForCausalLM, AutoTokenizer))
    conversation = [SYSTEM, *talk("say red 1", "red 1"), turn("user", "say <b")]
    read = words.apply_chat_template(conversation, add_generation_prompt=True, return_dict=True, return_tensors="pt")
    assert read["input_ids"].tolist()[0] == model.written.prompt(conversation)
    assert words.apply_chat_template(conversation, add_generation_prompt=True, tokenize=False) == model.prompt(
        conversation
    )
    for asked in ([turn("user", "say red 3")], [SYSTEM, turn("user", "hi")]):
        ids = words.apply_chat_template(asked, add_generation_prompt=True, return_dict=True, return_tensors="pt")
        said = theirs.generate(**ids, max_new_tokens=9, do_sample=False)[0, ids["input_ids"].shape[1] :].tolist()
        reply = model.chat(asked, tokens=9, temperature=0.0)
        assert [*reply.tokens, *([model.written.end] if reply.finish == "stop" else [])] == said


def test_streamed_batched_and_asked_it_says_the_same(model):
    conversations = [own[:1] for own in TALKS[:5]] + [[SYSTEM, turn("user", "say")]]
    alone = [model.chat(own, tokens=6, temperature=0.0) for own in conversations]
    together = model.chat_each(conversations, tokens=6, temperature=0.0, batch=2)
    assert [one._replace(logprobs=[]) for one in together] == [one._replace(logprobs=[]) for one in alone]
    assert len({one.content for one in alone}) > 1
    streamed = ["".join(model.chat_stream(own, tokens=6, temperature=0.0)) for own in conversations]
    assert streamed == [reply.content for reply in alone]
    settings = {"tokens": 6, "sampling": {"temperature": 0.0}}
    records = ask(model, "chat", [json.dumps(own) for own in conversations], settings)
    assert records == [{"role": "assistant", "content": one.content, "tokens": one.tokens} for one in alone]
    assert ask(model, "chat", ["say"], settings | {"system": "Be kind."}) == records[-1:]
    assert model.chat("say", tokens=6, temperature=0.0) == model.chat([turn("user", "say")], tokens=6, temperature=0.0)
    drawn = [model.chat("say", tokens=6, seed=seed).tokens for seed in range(5)]
    assert len({tuple(tokens) for tokens in drawn}) > 1
    assert model.chat("say", tokens=6, seed=1).tokens == drawn[1]


def test_the_first_turns_are_forgotten_and_never_the_system(model):
    talks = [SYSTEM, *talk("one", "1"), *talk("two", "2"), *talk("three", "3"), turn("user", "four")]
    whole = model.written.prompt(talks)
    for room in range(25, len(whole) + 1):
        ids, forgotten = fitted_prompt(model.written, talks, room)
        assert len(ids) <= room
        kept = [SYSTEM, *talks[1 + forgotten :]]
        assert ids == model.written.prompt(kept)
        assert forgotten in (0, 2, 4, 6)
    assert fitted_prompt(model.written, talks, len(whole) - 1)[1] == 2  # no more than is needed
    with pytest.raises(InputError, match="tokens of the last question"):
        fitted_prompt(model.written, talks, 10)
    reply = model.chat([SYSTEM, *talks[1:] * 3], tokens=8, temperature=0.0)
    assert reply.forgotten
    (record,) = ask(model, "chat", [json.dumps([SYSTEM, *talks[1:] * 3])], {"tokens": 8})
    assert "first" in record["warning"]
    with pytest.raises(InputError, match="nothing to answer"):
        model.chat(talks[:3])


def test_few_ends_of_a_long_conversation_are_read(model, monkeypatch):
    """Not one for each of its turns, which takes minutes of some hundreds."""
    talks = [SYSTEM, *[one for number in range(200) for one in talk(f"say {number}", "1")], turn("user", "four")]
    ids, forgotten = fitted_prompt(model.written, talks, 60)
    one_more = model.written.prompt([SYSTEM, *talks[forgotten - 1 :]])
    assert (len(ids) <= 60, len(one_more) > 60, forgotten % 2) == (True, True, 0)
    read = {"prompt": 0, "learning": 0}

    def count(name):
        whole = getattr(model.written, name)

        def counted(messages):
            read[name] += 1
            return whole(messages)

        monkeypatch.setattr(model.written, name, counted)

    count("prompt")
    count("learning")
    assert fitted_prompt(model.written, talks, 60) == (ids, forgotten)
    (text,), _ = learnable(model.written, [(*talks[:-1],)], 60, "made")
    assert len(text.ids) <= 61
    assert all(1 < count < 12 for count in read.values())


def test_an_answer_never_outgrows_the_context(model):
    for tokens in (1, 5, 500):
        asked = model.asked([SYSTEM, turn("user", "say red 1 2 3")], tokens)
        assert 1 <= asked.tokens <= tokens
        assert len(asked.ids) + asked.tokens <= model.context
    reply = model.chat([SYSTEM, turn("user", "say red 1 2 3")], tokens=500, temperature=1.5)
    assert reply.finish in ("stop", "length")


def test_long_conversations_are_cut_at_whole_turns_and_it_is_said(model):
    long = (SYSTEM, *talk("a" * 20, "1"), *talk("say red 1", "red 1"))
    alone = talk("a" * 30, "b" * 30)
    texts, notes = learnable(model.written, [long, alone, TALKS[0]], 40, "made")
    assert [text.ids for text in texts] == [model.written.learning(own).ids for own in ((SYSTEM, *long[3:]), TALKS[0])]
    assert notes == [
        "made: 1 conversation longer than the context of 40 tokens, without the first turns",
        "made: 1 conversation whose last question and answer are longer than 40 tokens is left out",
    ]
    with pytest.raises(InputError, match="no conversation of at most 40 tokens"):
        learnable(model.written, [alone], 40, "made")
    with pytest.raises(InputError, match="no conversation of at most 40 tokens") as raised:
        ChatJob(recipe(), replace(CORPUS, tests={"test": [alone]}))
    assert raised.value.where == "made, test"


def talk_of(model, text):
    return [turn("user", text), model.chat(text, tokens=6, temperature=0.0).message]


def test_a_question_that_leaves_no_room_is_not_compared_and_it_is_said(model):
    long = talk("a" * 30, "b")
    assert model.greedy_each([long[:1], TALKS[0][:1], ()], tokens=20)[::2] == [None, None]
    found = model.evaluate_answers([long, TALKS[0]], answers=2)
    assert found.scores["answers"] == 1
    assert found.notes == ("no room for an answer is left by 1 question, not compared",)


def test_it_is_a_language_model_too(run, model, tmp_path):
    assert isinstance(model, heedful.LanguageModel)
    plain = heedful.LanguageModel.load(run[0])
    assert plain.generate("say", tokens=5, temperature=0.0) == model.generate("say", tokens=5, temperature=0.0)
    (steps,) = ask(model, "steps", ["say"], {"most": 2, "chosen": [5, 6]})
    assert len(steps["steps"]) == 2
    talk = [*talk_of(model, "say red"), turn("user", "say blue")]
    for given in ("say red", json.dumps(talk[:2]), json.dumps(talk)):
        page = model.look(given, kind="json").picture
        shown = json.loads(page)
        messages = messages_in(given)
        if messages[-1]["role"] == "user":
            messages = [*messages, model.chat(messages, tokens=48, temperature=0.0).message]
        ids = model.conversations([given])[0]
        assert ids[: len(model.written.prompt(messages[:-1]))] == model.written.prompt(messages[:-1])
        said = [step["said"]["token"] for step in shown["steps"]]
        assert said == ids[1:]
    assert all(law.holds for law in check(run[0]))


def test_training_begins_with_a_language_model_whose_vocabulary_grows(run, tmp_path):
    texts = Parts([own[1]["content"] for own in TALKS] * 2, ["red 1\n"] * 20, {}, "made", (), ())
    plan = build(
        {"task": "generate", "data": {"tokenizer": "chars"}, "train": PLAN, "preset": "llama-nano", "model": SMALL},
        where="test",
    )
    list(train(plan, tmp_path / "text", corpus=texts))
    before = heedful.load(tmp_path / "text")
    with pytest.raises(OtherTaskError, match="learnt no conversations"):
        ChatModel.load(tmp_path / "text")
    plan = recipe(start_from=str(tmp_path / "text"), preset="", model={}, train=PLAN | {"steps": 1, "lr": 1e-9})
    list(train(plan, tmp_path / "chat", corpus=CORPUS))
    after = heedful.load(tmp_path / "chat")
    assert after.tokenizer.size == before.tokenizer.size + 1
    old, new = (own.model.embed.tokens.weight for own in (before, after))
    torch.testing.assert_close(new[:-1], old, rtol=0, atol=1e-6)
    # And a chat model is one to start from, whose template is kept.
    plan = recipe(start_from=str(tmp_path / "chat"), preset="", model={}, train=PLAN | {"steps": 1})
    list(train(plan, tmp_path / "again", corpus=CORPUS))
    assert heedful.load(tmp_path / "again").tokenizer.size == after.tokenizer.size


def test_training_begins_with_an_imported_model(imported, tmp_path):
    """By the simplest template where it has none, else by its own, which stays as it is."""
    plan = recipe(start_from=str(imported), preset="", model={}, data={}, train=PLAN | {"steps": 1})
    list(train(plan, tmp_path / "simple", corpus=CORPUS))
    simple = heedful.load(tmp_path / "simple")
    assert simple.tokenizer.pieces([simple.written.end]) == ["<|endoftext|>"]
    assert simple.chat("say red", tokens=3).content is not None
    template = (
        "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}{{ eos_token if m['role'] == 'assistant' }}\n"
    )
    template += "{% endfor %}{{ '[assistant] ' if add_generation_prompt }}"
    shutil.copytree(imported, tmp_path / "own")
    (tmp_path / "own" / "chat_template.jinja").write_text(template)
    plan = recipe(start_from=str(tmp_path / "own"), preset="", model={}, data={}, train=PLAN | {"steps": 1})
    list(train(plan, tmp_path / "chat", corpus=CORPUS))
    model = heedful.load(tmp_path / "chat")
    assert (tmp_path / "chat" / "chat_template.jinja").read_text() == template
    assert model.tokenizer.size == heedful.load(imported).tokenizer.size
    assert model.prompt([turn("user", "a")]) == "[user] a\n[assistant] "


def test_a_prompt_that_ends_inside_of_a_token_is_told(tmp_path):
    """The blank before an answer is a part of its first token, which would not be learnt."""
    talks = [talk("say red", "red red red"), talk("say blue", "blue blue blue")] * 20
    corpus = Parts(talks, talks[:2], {}, "made", (), ())
    written = "{% for m in messages %}{{ m.role }}: {{ m.content + ('</s>' if m.role == 'assistant' else ' ') }}"
    written += "{% endfor %}{% if add_generation_prompt %}assistant:PLACE{% endif %}"
    notes = {}
    for place in (" ", ""):
        file = tmp_path / "own.jinja"
        file.write_text(written.replace("PLACE", place))
        data = {"tokenizer": "bpe", "vocab_size": 320, "template": str(file)}
        notes[place] = [note for note in ChatJob(recipe(data=data), corpus).notes if "generation prompt" in note]
    assert notes[""] == []
    assert "the prompts of 32 of 32 conversations are not how those begin, in tokens" in notes[" "][0]


def test_templates_are_chosen_by_name_or_file(tmp_path):
    file = tmp_path / "roles.jinja"
    file.write_text("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}<|assistant|>")
    job = ChatJob(recipe(data={"tokenizer": "chars", "template": str(file)}), CORPUS)
    assert [*job.tokenizer.extra] == ["<|end|>", "<|assistant|>"]
    for name, kind in (("mine", InputError), (str(tmp_path / "none.jinja"), MissingError)):
        with pytest.raises(kind):
            ChatJob(recipe(data={"tokenizer": "chars", "template": name}), CORPUS)


def test_a_line_is_a_turn_or_a_list_of_messages():
    assert messages_in("hi") == [turn("user", "hi")]
    assert messages_in('[1, 2] and "x"') == [turn("user", '[1, 2] and "x"')]
    assert messages_in("[1, 2]") == [turn("user", "[1, 2]")]
    assert messages_in(json.dumps([SYSTEM, turn("user", "hi")])) == [SYSTEM, turn("user", "hi")]
    with pytest.raises(InputError, match="the role None"):
        messages_in('[{"content": "hi"}]')


@pytest.mark.parametrize("wrong", [turn("user", "say red 1"), ["say red 1", "red 1"]])
def test_what_are_no_messages_is_told(model, wrong):
    with pytest.raises(InputError, match="messages are a list of objects"):
        inspect.unwrap(ChatModel.asked)(model, wrong, 3)  # without its annotations


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ({"role": "user", "content": 3}, "the content of a message is a number"),
        ({"role": "user", "content": [{"type": "image"}]}, "the content of a message is a list"),
        ({"content": "ba"}, "the role None"),
    ],
)
def test_a_message_that_is_none_is_told(model, message, told):
    with pytest.raises(InputError, match=told):
        model.chat([message])
    with pytest.raises(InputError, match=told):
        [*model.chat_stream([message])]


def test_a_text_in_parts_is_one(model):
    parts = [{"type": "text", "text": "b"}, {"type": "text", "text": "a"}]
    said = model.chat([{"role": "user", "content": parts}], temperature=0.0)
    assert said.content == model.chat("ba", temperature=0.0).content


def test_each_of_several_may_be_a_text(model):
    told = model.chat_each(["say red 1", TALKS[0][:1]], tokens=4, temperature=0.0)
    assert told == model.chat_each([(turn("user", "say red 1"),), TALKS[0][:1]], tokens=4, temperature=0.0)
