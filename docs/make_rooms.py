"""Draws docs/rooms.svg, which room of the house uses which, from the imports of all modules:

python -m docs.make_rooms
"""

import ast
from pathlib import Path

PICTURE = Path(__file__).parent / "rooms.svg"
PACKAGE = Path(__file__).parent.parent / "heedful"
FLOORS = (  # from the ground up
    ("core",),
    ("models", "decode", "look", "data", "metrics"),
    ("store", "training", "apply", "figures"),
    ("run", "exchange"),
    ("tasks.shared", "tasks.*", "tasks"),
    ("verbs",),
    ("serve", "lab"),
    ("cli",),
)
ROOMS = [room for floor in FLOORS for room in floor]
CELL, LEFT, TOP = 26, 120, 100
UP = "#e04040"  # an import that leads up


def room(module: str) -> str:
    """The room of a module, by its dotted name without "heedful."; "" for what is in none."""
    head, _, rest = module.partition(".")
    inner = rest.partition(".")[0]
    if head == "tasks" and (PACKAGE / "tasks" / inner).is_dir() and inner:
        return "tasks.shared" if inner == "shared" else "tasks.*"
    return head if head in ROOMS else ""


def uses() -> set[tuple[str, str]]:
    """Each room with each other that it imports from, also later: the parts of a task's row count too."""
    found: set[tuple[str, str]] = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        here = room(".".join(path.relative_to(PACKAGE).with_suffix("").parts))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = ""
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                name = node.module or ""
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Lazy":
                name = ast.literal_eval(node.args[0]).partition(":")[0]
            there = room(name.removeprefix("heedful.")) if name.startswith("heedful.") else ""
            if here and there and here != there:
                found.add((here, there))
    return found


def picture() -> str:
    """A row for each room, a column for each that it may use. What leads up would be red, right of the diagonal."""
    used, size = uses(), CELL * len(ROOMS)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + size + 20} {TOP + size + 20}" '
        'font-family="sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="white"/>',
        '<text x="10" y="20">a room (row) uses another (column)</text>',
    ]
    floor_of = {name: number for number, floor in enumerate(FLOORS) for name in floor}
    for i, name in enumerate(ROOMS):
        x, y = LEFT + i * CELL, TOP + i * CELL
        parts.append(f'<text x="{LEFT - 8}" y="{y + 18}" text-anchor="end">{name}</text>')
        parts.append(f'<text transform="translate({x + 18},{TOP - 8}) rotate(-60)" text-anchor="start">{name}</text>')
        for j, other in enumerate(ROOMS):
            shade = "#dddddd" if i == j else "#f4f4f4" if j > i else "white"
            if (name, other) in used:
                shade = "#5b9bd5" if floor_of[other] <= floor_of[name] else UP
            parts.append(
                f'<rect x="{LEFT + j * CELL}" y="{y}" width="{CELL}" height="{CELL}" fill="{shade}" stroke="#bbbbbb"/>'
            )
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
