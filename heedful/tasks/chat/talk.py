"""A conversation at a terminal: its turns, and the commands that change it."""

import json
from collections.abc import Generator
from pathlib import Path

from heedful.data.text.conversations import Message
from heedful.decode.settings import SamplingOptions
from heedful.errors import HeedError, InputError, counted
from heedful.store import files
from heedful.store.lock import one_after_another
from heedful.tasks.chat.options import ChatOptions
from heedful.tasks.chat.use import ChatModel, ChatRecord, Reply, answer_turns, listed_in

HELP = """/reset         forget what was said; the system's text stays
/system TEXT   what the system says first; without a text, show it
/save FILE     write the conversation as a line that heed train chat --data reads
/quit          leave, as Ctrl-D does; Ctrl-C ends an answer"""
GONE, QUIT = "bye", ("/quit", "/exit", "/bye")


class Talk:
    """A conversation. `turns` are the messages of user and assistant; the system's text comes before them."""

    def __init__(self, model: ChatModel, options: ChatOptions) -> None:
        self.model, self.options, self.system = model, options, options.system
        self.turns: list[Message] = []

    @property
    def messages(self) -> list[Message]:
        first: list[Message] = [{"role": "system", "content": self.system}] if self.system else []
        return first + self.turns

    def answer(self, text: str) -> Generator[str, None, Reply]:
        """Yields the reply to a user's message piece by piece, and returns the whole. Both are then appended to the
        conversation; where the generator is closed before the end, with the part of the reply so far. Raises TextError,
        and the conversation is then unchanged."""
        asked: Message = {"role": "user", "content": text}
        options, said = self.options, ""
        sampling = SamplingOptions(**options.sampling)
        sampling["seed"] = sampling.get("seed", 0) + len(self.turns)
        pieces = self.model.chat_stream([*self.messages, asked], tokens=options.tokens, stop=options.stop, **sampling)
        try:
            while True:
                try:
                    piece = next(pieces)
                except StopIteration as over:
                    whole: Reply = over.value
                    self.turns += [asked, whole.message]
                    return whole
                said += piece
                yield piece
        except (GeneratorExit, KeyboardInterrupt):
            self.turns += [asked, {"role": "assistant", "content": said}] if said else []
            raise

    def reply(self, text: str) -> Reply:
        """Returns the whole reply to a user's message. Raises TextError."""
        pieces = self.answer(text)
        while True:
            try:
                next(pieces)
            except StopIteration as over:
                return over.value

    def record(self, line: str, *, commands: bool) -> ChatRecord:
        """The answer to a line: a turn of this conversation, or a JSON list of messages, which is answered by itself
        and does not change the conversation. With `commands`, a line that begins with "/" is a command. Raises
        TextError."""
        if commands and line.startswith("/"):
            return {"role": "system", "content": self.command(line.strip()), "tokens": []}
        if listed_in(line) is None:
            return self.reply(line).record()
        (record,) = answer_turns(self.model, [line], self.options)
        return record

    def command(self, line: str) -> str:
        """Executes a command and returns the text to show; GONE means the end."""
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        match word:
            case "/reset":
                self.turns = []
                return "a new conversation"
            case "/system":
                self.system = rest or self.system
                return f"the system says: {self.system}" if self.system else "there is no system text"
            case "/save":
                return self._save(rest)
            case "/help":
                return HELP
        if word in QUIT:
            return GONE
        return f"no command {word}; /help tells which there are"

    def _save(self, name: str) -> str:
        if not name:
            return "give a name: /save talk.jsonl"
        path = Path(name)
        try:
            files.need_output(path)
            with one_after_another(path.parent):
                if path.exists():
                    raise InputError("is there already", where=name, fix="choose another name")
                line = json.dumps({"messages": self.messages}, ensure_ascii=False) + "\n"
                files.write_output(path, line.encode())
        except HeedError as error:
            return f"not saved: {error}"
        return f"{path}: {counted(len(self.turns), 'turn')}"
