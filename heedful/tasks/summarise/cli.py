"""`heed summarise`: `heed translate` under another name."""

from heedful.tasks.shared.terminal import Command
from heedful.tasks.translate.cli import translate

HELP = """Summarise texts, or standard input line by line.

Example: heed summarise runs/summarise "A long text." --beam 5
"""

COMMANDS = (Command("summarise", translate, HELP),)
