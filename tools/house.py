"""`make house`: the rooms of the package, floor by floor, and the imports between them."""

import ast
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "attnbook"
# From the ground up: a room (a folder or a root module) imports only from rooms before it.
ORDER = (
    *(
        "checks",
        "files",
        "bundles",
        "source",
        "cores",
        "assets",
        "text",
        "model",
        "weights",
        "learn",
    ),
    *("train", "show", "web", "walks", "teach"),
)


def arrows(package: Path = PACKAGE) -> Counter[tuple[str, str]]:
    """(importing room, imported room) -> import statements, those inside functions included."""
    counts: Counter[tuple[str, str]] = Counter()
    for path in sorted(package.rglob("*.py")):
        room = path.relative_to(package).with_suffix("").parts[0]
        if room == "__init__":  # the entrance, which imports `cores` and `source`
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [name.name for name in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{name.name}" for name in node.names]
                if node.level:
                    raise ValueError(f"{path}:{node.lineno} must name the package, got dots")
            rooms = {name.split(".")[1] for name in names if name.startswith("attnbook.")}
            counts.update((room, other) for other in rooms - {room})
    return counts


def floors(pairs: Counter[tuple[str, str]]) -> dict[str, int]:
    """The floor of each room, one above the highest that it imports from, or a CycleError."""
    below = {room: {other for own, other in pairs if own == room} for room in ORDER}
    height: dict[str, int] = {}
    for room in TopologicalSorter(below).static_order():
        height[room] = 1 + max((height[other] for other in below.get(room, ())), default=-1)
    return height


def upward(pairs: Counter[tuple[str, str]]) -> list[tuple[str, str]]:
    """The arrows that do not lead down in `ORDER`."""
    return [(a, b) for a, b in pairs if a not in ORDER or b not in ORDER[: ORDER.index(a)]]


if __name__ == "__main__":
    pairs = arrows()
    height = floors(pairs)
    for floor in range(max(height.values()), -1, -1):
        print(f"floor {floor}:", *(room for room in ORDER if height[room] == floor))
    print(
        f"{len(height)} rooms, {len(pairs)} arrows, {pairs.total()} import statements across rooms"
    )
    print("imports that run up:", ", ".join(f"{a} -> {b}" for a, b in upward(pairs)) or "none")
