"""Draws which part of fairlead imports which, and finds imports that go the wrong way.

`python docs/import_graph.py` prints the layers as docs/internals.md shows them. `python docs/import_graph.py FOLDER`
draws each import between them, into FOLDER/imports.svg. tests/test_import_layers.py checks the same table.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[1] / "src" / "fairlead"

LAYERS: tuple[tuple[tuple[str, str], ...], ...] = (
    (
        ("basics", "errors escaping frozen glob amounts extras build moved peers signing display paths agent_process"),
        ("shell", "shell"),
        ("redaction", "redaction"),
    ),
    (
        ("steps and verdicts", "targets tools lifecycle result verdict samples hook"),
        ("timing", "engine.deadlines engine.threads"),
        ("decisions", "approvals decision rendering"),
    ),
    (
        ("wire", "wire"),
        ("engine", "engine session"),
    ),
    (
        ("telemetry", "telemetry"),
        ("hooks", "registry testing worker pytest_plugin enforcement"),
    ),
    (
        ("runners", "runners"),
        ("packs", "packs"),
        ("masking", "redaction.masking"),  # what a human sees of a step
        ("journal", "journal"),
        ("folders", "folders"),
        ("config", "config"),
    ),
    (
        ("client", "client"),
        ("hosts.clis", "hosts.clis hosts.__main__"),
        ("hosts.frameworks", "hosts"),
        ("hosts.loop", "hosts.loop"),
        ("server", "server"),
        ("replay", "replay"),
    ),
    (
        ("ui", "ui"),
        ("fleet", "fleet"),
    ),
    (
        ("cli", "cli __main__ reference"),
    ),
)  # fmt: skip
"""The parts of fairlead, lowest first, each with its modules. A part may import those below it and to its left."""

LATE: dict[tuple[str, str], str] = {
    ("approvals", "redaction.masking"): "only a question that is shown to a human needs it",
    ("hook", "engine.threads"): "only a hook that blocks needs a thread",
    ("registry", "packs.installed"): "only a program that uses packs needs them",
    ("registry", "packs.rules"): "only a program that uses packs needs them",
    ("registry", "packs.judging"): "only a program that uses packs needs them",
    ("pytest_plugin", "replay.cases"): "only a file of test cases needs them",
    ("pytest_plugin", "replay.policies"): "only a file of test cases needs them",
    ("client", "server.daemon"): "the client starts the daemon where none runs",
    ("folders", "hosts.clis.client"): "the launcher is one file without imports, so what both need is kept there",
}
"""Imports inside functions that go up, and why each is right."""


class Import(NamedTuple):
    """One module of fairlead imports another. `late`: inside a function."""

    importer: str
    imported: str
    late: bool


def read_imports(source: Path = SOURCE) -> list[Import]:
    """All imports inside the package, by module name without `fairlead.`; those for type checkers are left out."""
    modules = {_name_of(path, source): path for path in sorted(source.rglob("*.py"))}
    return [found for name, path in modules.items() for found in _imports_of(name, path, modules)]


def _name_of(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports_of(name: str, path: Path, modules: dict[str, Path]) -> Iterator[Import]:
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    package = [part for part in package if part]
    for node, late in _walk(ast.parse(path.read_text()), late=False):
        for full in _targets(node, package, modules):
            if full != name:
                yield Import(name, full, late)


def _walk(node: ast.AST, *, late: bool) -> Iterator[tuple[ast.AST, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child, late
        yield from _walk(child, late=late or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)))


def _targets(node: ast.AST, package: list[str], modules: dict[str, Path]) -> Iterator[str]:
    """The modules that an import statement loads. The package itself has only names that are loaded when used."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names if alias.name.startswith("fairlead.")]
        yield from (name.removeprefix("fairlead.") for name in names)
    elif isinstance(node, ast.ImportFrom):
        base = package[: len(package) - node.level + 1] if node.level else []
        base = [*base, *(node.module or "").split(".")]
        if not node.level:
            if base[0] != "fairlead":
                return
            base = base[1:]
        for alias in node.names:
            whole = ".".join(part for part in (*base, alias.name) if part)
            found = whole if whole in modules else ".".join(part for part in base if part)
            if found:
                yield found


# --- the table ------------------------------------------------------------------------------------

_ORDER = [part for layer in LAYERS for part, _ in layer]
_PART = {module: part for layer in LAYERS for part, modules in layer for module in modules.split()}


def part_of(module: str) -> str:
    """The part to which a module belongs: that of the longest name in the table which it begins with."""
    names = module.split(".")
    for length in range(len(names), 0, -1):
        if (part := _PART.get(".".join(names[:length]))) is not None:
            return part
    raise LookupError(f"{module} is in no layer; add it to LAYERS in docs/import_graph.py")


def goes_up(found: Import) -> bool:
    return _ORDER.index(part_of(found.imported)) > _ORDER.index(part_of(found.importer))


def violations(imports: list[Import]) -> list[str]:
    """Imports from a lower part of a higher one that `LATE` does not list, and entries there that no import needs."""
    up = {found for found in imports if found.importer and goes_up(found)}
    listed = {Import(*pair, late=True) for pair in LATE}
    found = [
        f"{one.importer} ({part_of(one.importer)}) imports {one.imported} ({part_of(one.imported)})"
        + (" inside a function" if one.late else "")
        for one in sorted(up - listed)
    ]
    used = {(one.importer, one.imported) for one in up}
    return found + [f"no import needs the entry {' -> '.join(pair)}" for pair in LATE if pair not in used]


# --- the picture ----------------------------------------------------------------------------------

_WIDTH, _HEIGHT, _GAP, _ROW = 190, 44, 26, 120


def layers(imports: list[Import]) -> str:
    """The parts in lines of text, a layer in each, the highest on top."""
    here = {part_of(module) for one in imports for module in one[:2] if module}
    rows = ([part for part, _ in layer if part in here] for layer in reversed(LAYERS))
    return "\n".join(" | ".join(row) for row in rows if row) + "\n"


def draw(imports: list[Import]) -> str:
    """The parts as boxes, a layer in each row, the highest on top; a line for each pair, as thick as it has imports."""
    pairs = Counter((part_of(one.importer), part_of(one.imported)) for one in imports if one.importer)
    here = {part for pair in pairs for part in pair}
    rows = [shown for layer in reversed(LAYERS) if (shown := [part for part, _ in layer if part in here])]
    width = max(map(len, rows)) * (_WIDTH + _GAP) + _GAP
    height = 40 + len(rows) * _ROW
    at: dict[str, tuple[int, int]] = {}
    for y, row in enumerate(rows):
        left = (width - len(row) * (_WIDTH + _GAP) + _GAP) // 2
        at |= {part: (left + i * (_WIDTH + _GAP), 40 + y * _ROW) for i, part in enumerate(row)}
    lines = [_line(a, b, at, count) for (a, b), count in pairs.items() if a != b]
    caption = "A part imports what is below it, and to its left. Dashed: inside a function, for a reason."
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{_GAP}" y="22" font-size="13">{caption}</text>',
        *lines,
        *(_box(part, *place) for part, place in at.items()),
        "</svg>",
    ])  # fmt: skip


def _box(part: str, x: int, y: int) -> str:
    modules = " ".join(name for name, owner in _PART.items() if owner == part)
    place = f'x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}"'
    return (
        f'<g><title>{escape(modules)}</title><rect {place} rx="6" fill="#eef3fb" stroke="#345"/>'
        f'<text x="{x + _WIDTH // 2}" y="{y + 27}" font-size="13" text-anchor="middle">{escape(part)}</text></g>'
    )


def _line(importer: str, imported: str, at: dict[str, tuple[int, int]], count: int) -> str:
    (ax, ay), (bx, by) = at[importer], at[imported]
    up = _ORDER.index(imported) > _ORDER.index(importer)
    middle = _WIDTH // 2
    thick = min(1 + count / 8, 5)
    style = 'stroke="#c44" stroke-dasharray="5 4"' if up else 'stroke="#89a" stroke-opacity="0.6"'
    if ay == by:  # in one row: an arc below the boxes
        x1, x2, y = ax + middle, bx + middle, ay + _HEIGHT
        path = f"M{x1},{y} Q{(x1 + x2) // 2},{y + 30} {x2},{y}"
    elif ay < by:
        path = f"M{ax + middle},{ay + _HEIGHT} L{bx + middle},{by}"
    else:
        path = f"M{ax + middle},{ay} L{bx + middle},{by + _HEIGHT}"
    return f'<path d="{path}" fill="none" stroke-width="{thick:.1f}" {style}/>'


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(layers(read_imports()), end="")
        sys.exit()
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "imports.svg").write_text(draw(read_imports()))
