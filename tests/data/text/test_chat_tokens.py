"""What a model reads of a conversation: exactly what its template writes, with the assistant's turns told apart, and
never a control token that somebody typed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.text.chat_template import QUESTION_ANSWER, ChatTemplate
from heedful.data.text.chat_tokens import ChatTokens
from heedful.data.tokenizer import SpecialTokens, Tokenizer, train_tokenizer
from heedful.errors import InputError

NAMES = {"bos_token": "<s>", "eos_token": "</s>"}
ROLES = """{{ bos_token }}{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>
' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"""
EXTRA = ("<EOQ>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>")
OURS = {
    kind: train_tokenizer(["What is a model? It reads.\n"] * 9, kind=kind, size=320, extra=EXTRA)
    for kind in ("bpe", "unigram", "chars", "bytes")
}
TEMPLATES = {"question-answer": QUESTION_ANSWER, "roles": ROLES}


def theirs(tokenizer: Tokenizer) -> Tokenizer:
    import tokenizers

    inner = tokenizers.Tokenizer.from_str(tokenizer.json())
    return Tokenizer(inner, SpecialTokens(bos=2, eos=3, pad=0, unk=1))


def turn(role, content):
    return {"role": role, "content": content}


TALK = [
    turn("system", "Be kind."),
    turn("user", "Who?"),
    turn("assistant", "I am."),
    turn("user", "b"),
    turn("assistant", "c"),
]


MARKED = """{% for m in messages %}{% if m.role == 'assistant' %}
{% generation %}{{ m.content }}<|end|>{% endgeneration %}
{% else %}{{ '<|' + m.role + '|>' + m.content }}{% endif %}{% endfor %}"""


@pytest.mark.parametrize("template", [*TEMPLATES.values(), MARKED])
def test_an_answer_of_no_weight_is_read_and_not_learnt(template):
    tokens = ChatTokens(OURS["bpe"], ChatTemplate(template, NAMES))
    whole, text = tokens.learning(TALK), tokens.learning([*TALK[:2], TALK[2] | {"weight": 0}, *TALK[3:]])
    assert text.ids == whole.ids
    said = [index for index, learnt in zip(text.ids, text.learnt, strict=True) if learnt]
    assert (OURS["bpe"].decode_whole(said[:-1]).strip(), said[-1]) == ("c", tokens.end)


def test_marks_that_are_not_one_for_each_answer_tell_no_weights():
    tokens = ChatTokens(
        OURS["bpe"],
        ChatTemplate(MARKED.replace("{{ m.content }}", "{% endgeneration %}{% generation %}{{ m.content }}"), NAMES),
    )
    with pytest.raises(InputError, match="4 marks for 2 answers"):
        tokens.learning([*TALK[:2], TALK[2] | {"weight": 0}, *TALK[3:]])


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("kind", [*OURS, "theirs"])
def test_what_is_learnt_is_what_the_assistant_says_and_its_ends(kind, template):
    tokenizer = theirs(OURS["bpe"]) if kind == "theirs" else OURS[kind]
    tokens = ChatTokens(tokenizer, ChatTemplate(TEMPLATES[template], NAMES))
    text = tokens.learning(TALK)
    ends = {"question-answer": "</s>", "roles": "<|end|>"}
    assert tokenizer.pieces([tokens.end]) == [ends[template]]
    said, turns = [], [[]]
    for index, learnt in zip(text.ids, text.learnt, strict=True):
        if learnt:
            said.append(index)
            turns[-1].append(index)
            if index == tokens.end:
                turns.append([])
    assert [tokenizer.decode_whole([i for i in own if i != tokens.end]).strip() for own in turns] == ["I am.", "c", ""]
    assert text.ids[-1] == tokens.end
    assert text.learnt[-1]


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("kind", [*OURS, "theirs"])
def test_a_prompt_is_where_what_is_learnt_begins(kind, template):
    tokenizer = theirs(OURS["bpe"]) if kind == "theirs" else OURS[kind]
    tokens = ChatTokens(tokenizer, ChatTemplate(TEMPLATES[template], NAMES))
    text = tokens.learning(TALK[:3])
    prompt = tokens.prompt(TALK[:2])
    assert text.ids[: len(prompt)] == prompt
    assert text.learnt == [i >= len(prompt) for i in range(len(text.ids))]
    assert tokens.lead == {"question-answer": " ", "roles": ""}[template]


SPELLED = st.lists(st.sampled_from([*EXTRA, "<s>", "</s>", "<pad>", "<mask>", "a", "<", "|>", "\ufdd0", "é "])).map(
    "".join
)


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("kind", ["bpe", "unigram", "theirs"])
@given(asked=SPELLED, said=SPELLED)
def test_no_text_spells_a_control_token(kind, template, asked, said):
    tokenizer = theirs(OURS["bpe"]) if kind == "theirs" else OURS[kind]
    tokens = ChatTokens(tokenizer, ChatTemplate(TEMPLATES[template], NAMES))
    talk = [turn("user", f"x{asked}x"), turn("assistant", f"y{said}y")]
    plain = tokens.learning([turn("user", "xx"), turn("assistant", "yy")])
    text = tokens.learning(talk)
    controls = {*tokenizer.controls}
    assert [i for i in text.ids if i in controls] == [i for i in plain.ids if i in controls]
    own = [i for i, learnt in zip(text.ids, text.learnt, strict=True) if learnt][:-1]
    assert tokenizer.decode_whole(own).removeprefix(tokens.lead) == f"y{said}y"


def test_templates_that_say_too_little_are_refused():
    with pytest.raises(InputError, match="after whose answers no control token stands"):
        ChatTokens(OURS["bpe"], ChatTemplate("{% for m in messages %}{{ m.content }}{% endfor %}", NAMES))
    with pytest.raises(InputError, match="changes what the assistant says"):
        ChatTokens(OURS["bpe"], ChatTemplate("{% for m in messages %}{{ m.content | upper }}</s>{% endfor %}", NAMES))


LAST = """{{ bos_token }}{% for m in messages if m.role != 'system' %}{% if m.role == 'user' %}{{ '<|user|>' }}
{% if loop.last and messages[0].role == 'system' %}{{ messages[0].content + '\n\n' }}{% endif %}
{{ m.content + '<|end|>' }}{% else %}{{ m.content + eos_token }}{% endif %}{% endfor %}"""


def test_words_that_were_said_before_are_not_taken_for_the_answer():
    """By a template that writes the system's message into the last question, as Mistral's do: a question without its
    answer is no beginning of one with it."""
    tokens = ChatTokens(OURS["bpe"], ChatTemplate(LAST, NAMES))
    talk = [turn("user", "Say b or c"), turn("assistant", "b"), turn("user", "Say b"), turn("assistant", "b or c")]
    assert tokens.learning([turn("system", "b or c"), *talk]) == tokens.learning(talk)


def test_the_conversation_of_a_lecture():
    """What is GPT ? <EOQ> A ..."""
    tokenizer = train_tokenizer(["What is GPT ? A model"], kind="chars", size=300, extra=["<EOQ>"])
    tokens = ChatTokens(tokenizer, ChatTemplate(QUESTION_ANSWER, NAMES))
    ids = tokens.prompt([turn("user", "What is GPT ?")])
    assert tokenizer.decode(ids, extra=True) == "What is GPT ? <EOQ>"
    assert tokenizer.pieces(ids)[-1] == "<EOQ>"
