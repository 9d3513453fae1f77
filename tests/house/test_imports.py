"""Imports point one way: errors, values <- pruning <- index <- io <- the public face.

Every module is parsed, so imports inside functions and under ``TYPE_CHECKING`` count like any other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = ("arrays, errors, forks, ragged and values", "pruning", "index", "io", "the public face")
LAYER_OF_ROOM = {"arrays": 0, "errors": 0, "forks": 0, "ragged": 0, "values": 0, "pruning": 1, "index": 2, "io": 3}
PUBLIC_FACE = 4

MAY_OPEN_FILES = {"secateur.cli", "secateur.demo"}  # besides all of io
FILE_LIBRARIES = ("pyarrow.dataset", "pyarrow.fs", "pyarrow.parquet")
OPENERS = {"bz2", "codecs", "gzip", "io", "lzma", "os"}  # modules with a function open()


@dataclass(frozen=True)
class Module:
    """One parsed file of the package."""

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


def modules(root: Path) -> list[Module]:
    files = sorted((root / "secateur").rglob("*.py"))
    return [Module(p, p.relative_to(root).as_posix(), ast.parse(p.read_text(encoding="utf-8"))) for p in files]


def violations(module: Module) -> Iterator[str]:
    for line, imported in imports(module):
        for reason in objections(module, imported):
            yield f"{module.file}:{line}: {imported}: {reason}"
    if not may_open_files(module):
        for line, call in opening_calls(module):
            yield f"{module.file}:{line}: {call}: files are opened only in io"


def objections(module: Module, imported: str) -> Iterator[str]:
    """What speaks against one import in one module."""
    if is_in(imported, "secateur") and layer_of(imported) > module.layer:
        yield f"{LAYERS[module.layer]} may not import from {LAYERS[layer_of(imported)]}"
    if (is_in(imported, "pyspark") or is_in(imported, "py4j")) and not may_import_spark(module):
        yield "Spark is imported only in files named spark_*, in index/build/spark_tasks.py and in the public face"
    if is_in(imported, "pyiceberg") and not module.path.name.startswith("iceberg_"):
        yield "PyIceberg, which need not be there, is imported only in files named iceberg_*"
    if any(is_in(imported, library) for library in FILE_LIBRARIES) and not may_open_files(module):
        yield "files are opened only in io"


def is_in(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def may_import_spark(module: Module) -> bool:
    return (
        module.layer == PUBLIC_FACE
        or module.path.name.startswith("spark_")
        or module.file == "secateur/index/build/spark_tasks.py"
    )


def may_open_files(module: Module) -> bool:
    return module.layer == LAYER_OF_ROOM["io"] or any(is_in(module.name, name) for name in MAY_OPEN_FILES)


def imports(module: Module) -> Iterator[tuple[int, str]]:
    """(line, absolute dotted name) of everything imported; ``from a import b`` gives ``a.b``.

    What is reached through pyarrow counts as imported: ``pa.parquet``.
    """
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


def opening_calls(module: Module) -> Iterator[tuple[int, str]]:
    """(line, text) of the calls that open a file: ``open()``, ``os.open()``, ``Path().read_text()`` ..."""
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(func=ast.Name("open")):
                yield node.lineno, "open()"
            case ast.Call(func=ast.Attribute(value=ast.Name(name), attr="open")) if name in OPENERS:
                yield node.lineno, f"{name}.open()"
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name("Path")), attr=attr)) if (
                attr == "open" or attr.startswith(("read_", "write_"))
            ):
                yield node.lineno, f"Path().{attr}()"


def test_every_layer_is_there() -> None:
    assert {module.layer for module in modules(ROOT)} == set(range(len(LAYERS)))


def test_the_package_keeps_the_direction() -> None:
    found = [violation for module in modules(ROOT) for violation in violations(module)]
    assert not found, "\n" + "\n".join(found)


WRONG = [
    ("errors.py", "import secateur.pruning", "secateur.pruning"),
    ("values.py", "from secateur import pruning", "secateur.pruning"),
    ("values.py", "from secateur import prune", "secateur.prune"),
    ("values.py", "import secateur", "secateur"),
    (
        "pruning/leaf.py",
        "from secateur.index.container.index_file import read",
        "secateur.index.container.index_file.read",
    ),
    ("pruning/leaf.py", "from ..index import codec", "secateur.index.container.index_file"),
    ("pruning/deep/leaf.py", "from ... import io", "secateur.io"),
    ("pruning/__init__.py", "from ..io.store import Store", "secateur.io.storage.index_store.Store"),
    ("pruning/leaf.py", "def f():\n    from secateur.io import store", "secateur.io.storage.index_store"),
    ("pruning/leaf.py", "if TYPE_CHECKING:\n    import secateur.cli", "secateur.cli"),
    ("pruning/leaf.py", "import importlib\nimportlib.import_module('secateur.io')", "secateur.io"),
    (
        "index/container/index_file.py",
        "from secateur.io.storage.index_store import *",
        "secateur.io.storage.index_store.*",
    ),
    ("index/container/index_file.py", "from secateur.java import find_java", "secateur.java.find_java"),
    ("io/storage/index_store.py", "import secateur.api", "secateur.api"),
    ("pruning/leaf.py", "import pyspark", "pyspark"),
    ("index/container/index_file.py", "def f():\n    from pyspark.sql import Row", "pyspark.sql.Row"),
    ("index/spark/codec.py", "import pyspark.sql as sql", "pyspark.sql"),
    ("io/build.py", "import pyspark", "pyspark"),
    ("planning.py", "from pyiceberg.expressions import EqualTo", "pyiceberg.expressions.EqualTo"),
    ("index/container/index_file.py", "from py4j.protocol import Py4JError", "py4j.protocol.Py4JError"),
    ("pruning/leaf.py", "import pyarrow.parquet as pq", "pyarrow.parquet"),
    ("index/container/index_file.py", "from pyarrow import fs", "pyarrow.fs"),
    ("index/container/index_file.py", "import pyarrow as pa\npa.parquet.read_table('x')", "pyarrow.parquet"),
    ("api.py", "from pyarrow.fs import LocalFileSystem", "pyarrow.fs.LocalFileSystem"),
    ("index/container/index_file.py", "def f():\n    with open('x') as file: pass", "open()"),
    ("index/build/build.py", "import os\nos.open('x', 0)", "os.open()"),
    ("pruning/leaf.py", "Path('x').read_bytes()", "Path().read_bytes()"),
    ("api.py", "open('x')", "open()"),
]

RIGHT = [
    ("values.py", "from secateur.errors import SecateurError"),
    ("errors.py", "from . import values"),
    (
        "pruning/leaf.py",
        "from secateur import values\nfrom . import ranges\nfrom ..errors import SecateurError",
    ),
    ("pruning/leaf.py", "import pyarrow as pa\nimport pyarrow.compute as pc\nimport numpy"),
    ("pruning/leaf.py", "def f(blocks):\n    return blocks.open(1), pa.table({}).select([])"),
    ("pruning/leaf.py", "import pysparkling\nimport secateurs"),
    ("index/container/index_file.py", "from secateur.pruning.statistics import Zones"),
    ("index/build/spark_tasks.py", "import pyspark"),
    ("io/spark/to_spark.py", "from pyspark.sql import DataFrame"),
    ("io/tables/iceberg/expressions.py", "import pyiceberg.expressions"),
    (
        "io/storage/index_store.py",
        "import pyarrow.fs\nimport pyarrow.parquet\nopen('x')\nfrom secateur.index import codec",
    ),
    ("cli.py", "import secateur, pyspark\nopen('x')"),
    ("demo/tables.py", "import pyarrow.parquet as pq\nopen('x')"),
    ("__init__.py", "import pyspark\nfrom secateur.io import store\nfrom .api import prune"),
]


def check(root: Path, file: str, source: str) -> list[str]:
    path = root / "secateur" / file
    path.parent.mkdir(parents=True)
    path.write_text(source)
    return [violation for module in modules(root) for violation in violations(module)]


@pytest.mark.parametrize(("file", "source", "offence"), WRONG)
def test_a_wrong_import_is_found(tmp_path: Path, file: str, source: str, offence: str) -> None:
    found = check(tmp_path, file, source)
    assert len(found) == 1, found
    line = source.count("\n") + 1
    assert found[0].startswith(f"secateur/{file}:{line}: {offence}: ")


@pytest.mark.parametrize(("file", "source"), RIGHT)
def test_a_right_import_is_let_pass(tmp_path: Path, file: str, source: str) -> None:
    assert check(tmp_path, file, source) == []
