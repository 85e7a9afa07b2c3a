"""Chat templates are rendered as transformers does, and a hostile one costs an error in one line."""

import json
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from heedful.data.text import chat_template
from heedful.data.text.chat_template import QUESTION_ANSWER, ChatTemplate
from heedful.errors import InputError
from waiting import PATIENCE

TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": 'The weather <somewhere> & its "sky", é',
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
}
CALL = {"type": "function", "id": "a12345678", "function": {"name": "weather", "arguments": {"place": "Łódź"}}}
CONVERSATIONS: dict[str, list[dict[str, Any]]] = {
    "one question": [{"role": "user", "content": "What is GPT ?"}],
    "turns": [
        {"role": "user", "content": "  What is <GPT>?\n\n"},
        {"role": "assistant", "content": 'A "decoder".\n```py\n{% x %} {{ y }}\n```'},
        {"role": "user", "content": "And <|im_start|>BERT? \u202e 漢字 🙂"},
        {"role": "assistant", "content": " An encoder.  "},
    ],
    "system": [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "Hello\n"},
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": "Bye"},
    ],
    "empty": [{"role": "user", "content": ""}, {"role": "assistant", "content": ""}],
    "two of a role": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
    "an unknown role": [{"role": "narrator", "content": "a"}],
    "thought": [
        {"role": "user", "content": "2 + 2?"},
        {"role": "assistant", "content": "<think>\neasy\n</think>\n\n4"},
        {"role": "user", "content": "3 + 3?"},
        {"role": "assistant", "reasoning_content": "easy too", "content": "6"},
    ],
    "parts": [{"role": "user", "content": [{"type": "text", "text": "in parts"}, {"type": "text", "text": " two"}]}],
    "a tool": [
        {"role": "user", "content": "How is the weather?"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "name": "weather", "content": "Rain & <sun>", "tool_call_id": "a12345678"},
        {"role": "assistant", "content": "Rainy."},
    ],
}
OWN = {  # in the manner of the published families
    "chatml": """\
{%- for m in messages %}
    {%- if loop.first and m.role != 'system' %}
        {{- '<|im_start|>system\\nYou are helpful.<|im_end|>\\n' }}
    {%- endif %}
    {{- '<|im_start|>' + m.role + '\\n' }}
    {%- if m.role == 'assistant' %}
        {%- generation %}{{ m.content + '<|im_end|>' }}{% endgeneration %}
    {%- else %}
        {{- m.content + '<|im_end|>' }}
    {%- endif %}
    {{- '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}
""",
    "headers": """\
{{- bos_token }}
{%- if strftime_now is defined %}{%- set year = strftime_now('%Y') %}{%- else %}{%- set year = '2024' %}{%- endif %}
{% for m in messages -%}
    {% if m['role'] == 'assistant' and m.get('tool_calls') -%}
<|header|>{{ m['role'] }}<|end|>
{{ m.tool_calls[0].function | tojson(indent=4) }}{{ eos_token }}
    {%- else %}
<|header|>{{ m['role'] }} {{ year }}<|end|>

{{ m['content'] | trim }}{{ eos_token }}
    {%- endif %}
{%- endfor -%}
{% for tool in tools or [] %}
{{ tool | tojson }}

{% endfor %}
""",
    "alternating": """\
{{ bos_token }}{% set ns = namespace(system='') %}{% for m in messages %}
{% if m['role'] == 'system' %}{% set ns.system = m['content'] + '\\n\\n' %}{% continue %}{% endif %}
{% if (m['role'] == 'user') != (loop.index0 % 2 == (1 if ns.system else 0)) %}
{{ raise_exception("Roles must alternate user/assistant/user/assistant/...") }}
{% endif %}
{% if m.role == 'user' %}{{ '[INST] ' ~ ns.system ~ m.content | string | trim ~ ' [/INST]' }}
{% else %}{{ '<start_of_turn>' if m.role == 'model' else '' }} {{ m.content | trim }}{{ eos_token }}{% endif %}
{% if loop.index > 40 %}{% break %}{% endif %}
{% endfor %}
{%- macro turn(m) -%}{{ m.role | upper }}{%- endmacro -%}
{{ messages | map(attribute='role') | join(',') }}{{ turn(messages[-1]) }}{{ dict(a=1) | tojson }}
""",
    "question and answer": QUESTION_ANSWER,
}


def published() -> dict[str, str]:
    """The templates that the package trl has, where it is installed."""
    spec = find_spec("trl")
    folder = (
        Path(spec.submodule_search_locations[0]) / "chat_templates"
        if spec and spec.submodule_search_locations
        else None
    )
    return {} if folder is None else {path.stem: path.read_text("utf-8") for path in sorted(folder.glob("*.jinja"))}


@pytest.mark.parametrize("name", [*OWN, *published()])
def test_a_conversation_is_rendered_as_transformers_does(name: str) -> None:
    from jinja2.exceptions import TemplateError
    from transformers.utils.chat_template_utils import render_jinja_template

    source = OWN[name] if name in OWN else published()[name]
    template, same = ChatTemplate(source, TOKENS), 0
    for called, messages in CONVERSATIONS.items():
        for tools in (None, [TOOL]):
            for prompt in (False, True):
                settings: dict[str, Any] = {"add_generation_prompt": prompt, "tools": tools}
                marked = "{% generation" in source or "{%- generation" in source
                try:
                    (text,), spans = render_jinja_template(
                        [messages], chat_template=source, return_assistant_tokens_mask=marked, **settings, **TOKENS
                    )
                except (TemplateError, TypeError):
                    with pytest.raises(InputError):
                        template.render(messages, **settings)
                    continue
                assert template.render(messages, **settings) == text, called
                if marked and not prompt:
                    said = template.mark(messages, tools=tools)
                    assert (said.text, list(said.answers)) == (text, spans[0]), called
                same += 1
    assert same >= 4, "what can be rendered was compared"


def test_question_and_answer_is_the_simplest() -> None:
    template = ChatTemplate(QUESTION_ANSWER, {"eos_token": "</s>"})
    messages = [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "What is GPT ?"},
        {"role": "assistant", "content": "A decoder ."},
        {"role": "user", "content": "And BERT ?"},
    ]
    text = "Be short.\nWhat is GPT ? <EOQ> A decoder .</s>And BERT ? <EOQ>"
    assert template.render(messages) == template.render(messages, add_generation_prompt=True) == text
    marked = template.mark(messages)
    assert [marked.text[start:end] for start, end in marked.answers] == [" A decoder .</s>"]
    with pytest.raises(InputError, match="the role system cannot stand here"):
        template.render([*messages, messages[0]])
    with pytest.raises(InputError, match="eos_token"):
        ChatTemplate(QUESTION_ANSWER).render(messages)


MUCH = "more memory|more than 1 s "  # on a slow machine, time comes first
HOSTILE = {
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}": "more than 1 s ",
    "{{ 9 ** (9 ** 9) }}": "more than 1 s ",
    "{% set n = namespace(a='a') %}{% for i in range(60) %}{% set n.a = n.a ~ n.a %}{% endfor %}": MUCH,
    "{{ 'a' * 10 ** 10 }}": MUCH,
    "{{ '%2000000000d' % 1 }}": MUCH,
    "{{ 'a'.ljust(10 ** 10) }}": MUCH,
    "{% for i in range(99999) %}{{ 'a' * 9999 }}{% endfor %}": "more than 16,777,216 characters",
    "{{ range(10 ** 9) | list }}": "Range too big",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}": "nested too deeply",
    "{{ " + "(" * 5000 + ")" * 5000 + " }}": "nested too deeply",
    "{{ ''.__class__.__mro__ }}": "unsafe",
    "{{ self.__init__.__globals__ }}": "unsafe",
    "{{ cycler.__init__.__globals__.os.system('true') }}": "unsafe",
    "{{ '{0.__class__.__mro__}'.format(messages) }}": "unsafe",
    "{{ dict.__base__ }}{{ dict.mro() }}": "undefined|no attribute|unsafe",
    "{{ messages.append(1) }}": "unsafe",
    "{% set n = namespace(_a=1) %}": "underscore",
    "{% include '/etc/passwd' %}": "no loader|loader",
    "{% import 'os' as os %}": "loader",
    "{{ raise_exception('one\ntwo') }}": "(?m)chat template: one two$",
    "{{ messages | unknown }}": "line 1: No filter named 'unknown'",
    "{% if %}": "line 1",
    "{{ 1 / 0 }}": "ZeroDivisionError",
    "{{ missing.content }}": "'missing' is undefined",
    "x" * (1 << 20) + "x": "more than the 1,048,576",
}


@pytest.mark.parametrize("source", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_template_is_an_error_in_one_line(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    long = "more than 1 s " in HOSTILE[source]
    monkeypatch.setattr(chat_template, "SECONDS", 1 if long else PATIENCE)
    template = ChatTemplate(source, TOKENS)
    begun = time.monotonic()
    with pytest.raises(InputError, match=HOSTILE[source]) as raised:
        template.render([{"role": "user", "content": "x"}])
    assert "\n" not in str(raised.value)
    assert raised.value.fix
    assert time.monotonic() - begun < PATIENCE
    monkeypatch.setattr(chat_template, "SECONDS", PATIENCE)
    assert ChatTemplate("{{ messages[0].content }}").render([{"role": "user", "content": "still here"}]) == "still here"


def test_messages_are_plain_json() -> None:
    template = ChatTemplate("{% for m in messages %}{{ m.content }}{% endfor %}")
    assert template.render([{"role": "user", "content": "\ud83d\ude42 \ud83d"}]) == "🙂 �"
    assert template.render([{"role": "user", "content": ("a", 1, None)}]) == "['a', 1, None]"
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    for content, said in ((object(), "JSON cannot hold"), (deep, "more than 64")):
        with pytest.raises(InputError, match=said):
            template.render([{"role": "user", "content": content}])


def test_an_answer_inside_a_macro_has_no_place() -> None:
    source = "{% macro m(x) %}{% generation %}{{ x }}{% endgeneration %}{% endmacro %}{{ m(messages[0].content) }}"
    messages = [{"role": "assistant", "content": "x"}]
    assert ChatTemplate(source).render(messages) == "x"
    with pytest.raises(InputError, match="inside a macro"):
        ChatTemplate(source).mark(messages)


def test_an_interrupted_conversation_is_not_answered_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    template = ChatTemplate("{{ messages[0].content }}")
    assert template.render([{"content": "one"}]) == "one"

    def interrupted(text: str) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(json, "loads", interrupted)
        with pytest.raises(KeyboardInterrupt):
            template.render([{"content": "two"}])
    assert template.render([{"content": "three"}]) == "three"
