"""Parse the modules of the package, or of another folder, and list what they import."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]


LAYER_OF_ROOM = {
    "arrays": 0,
    "errors": 0,
    "forks": 0,
    "markup": 0,
    "integers": 0,
    "concurrency": 0,
    "ragged": 0,
    "values": 0,
    "pruning": 1,
    "index": 2,
    "io": 3,
}


PUBLIC_FACE = 4


@dataclass(frozen=True)
class Module:
    """One parsed file."""

    path: Path
    file: str  # from the root of the tree, with slashes
    tree: ast.Module

    @property
    def name(self) -> str:
        return self.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def package(self) -> str:
        """What a relative import with one dot starts from."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    @property
    def layer(self) -> int:
        return layer_of(self.name)


def layer_of(name: str) -> int:
    """The layer of a dotted name of the package: what is no room of its own is the public face."""
    rooms = name.split(".")
    return LAYER_OF_ROOM.get(rooms[1], PUBLIC_FACE) if len(rooms) > 1 else PUBLIC_FACE


def modules(root: Path, folder: str = "secateur") -> list[Module]:
    files = sorted((root / folder).rglob("*.py"))
    return [Module(p, p.relative_to(root).as_posix(), parsed(p.read_text(encoding="utf-8"))) for p in files]


@functools.cache
def parsed(text: str) -> ast.Module:
    """A module's tree: the tests of the house walk those of the package a dozen times."""
    return ast.parse(text)


def is_in(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


@functools.cache
def imports(module: Module) -> tuple[tuple[int, str], ...]:
    """(line, absolute dotted name) of everything imported; ``from a import b`` gives ``a.b``.

    What is reached through pyarrow counts as imported: ``pa.parquet``.
    """
    return tuple(_imports(module))


def _imports(module: Module) -> Iterator[tuple[int, str]]:
    arrow = names_of(module, "pyarrow")
    for node in ast.walk(module.tree):
        match node:
            case ast.Import():
                yield from ((node.lineno, alias.name) for alias in node.names)
            case ast.ImportFrom():
                source = imported_package(module, node)
                yield from ((node.lineno, f"{source}.{alias.name}") for alias in node.names)
            case ast.Call(func=ast.Name("__import__" | "import_module") | ast.Attribute(attr="import_module")):
                yield from ((node.lineno, name) for name in texts(node.args[:1]))
            case ast.Attribute(value=ast.Name(name), attr=attr) if name in arrow:
                yield node.lineno, f"pyarrow.{attr}"


def imported_package(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    above = module.package.split(".")
    start = above[: len(above) - node.level + 1]
    return ".".join([*start, node.module] if node.module else start)


def texts(arguments: list[ast.expr]) -> Iterator[str]:
    for argument in arguments:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield argument.value


def names_of(module: Module, imported: str) -> set[str]:
    """The names that a module gives to an imported module."""
    statements = [node for node in ast.walk(module.tree) if isinstance(node, ast.Import)]
    names = [alias for statement in statements for alias in statement.names]
    return {alias.asname or alias.name for alias in names if alias.name == imported}
