"""Imports point one way: errors, values <- pruning <- index <- io <- the public face.

Every module is parsed, so imports inside functions and under ``TYPE_CHECKING`` count like any other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checks.package_modules import (
    LAYER_OF_ROOM,
    PUBLIC_FACE,
    ROOT,
    Module,
    imports,
    is_in,
    layer_of,
    modules,
)

LAYERS = (
    "arrays, concurrency, errors, forks, integers, markup, ragged and values",
    "pruning",
    "index",
    "io",
    "the public face",
)

ICEBERG_ROOM, HUDI_ROOM = "iceberg", "hudi"
MAY_OPEN_FILES = {"secateur.cli", "secateur.demo"}  # besides all of io
FILE_LIBRARIES = ("pyarrow.dataset", "pyarrow.fs", "pyarrow.parquet")
OPENERS = {"bz2", "codecs", "gzip", "io", "lzma", "os"}  # modules with a function open()


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
        yield "Spark is imported only in io/spark, in index/build/spark_{tasks,calls}.py and in the public face"
    if is_in(imported, "pyiceberg") and ICEBERG_ROOM not in module.name.split("."):
        yield "PyIceberg, which need not be there, is imported only in folders named iceberg"
    if is_in(imported, "fastavro") and HUDI_ROOM not in module.name.split("."):
        yield "fastavro, which need not be there, is imported only in folders named hudi"
    if any(is_in(imported, library) for library in FILE_LIBRARIES) and not may_open_files(module):
        yield "files are opened only in io"


def may_import_spark(module: Module) -> bool:
    return (
        module.layer == PUBLIC_FACE
        or is_in(module.name, "secateur.io.spark")
        or module.file in ("secateur/index/build/spark_tasks.py", "secateur/index/build/spark_calls.py")
    )


def may_open_files(module: Module) -> bool:
    return module.layer == LAYER_OF_ROOM["io"] or any(is_in(module.name, name) for name in MAY_OPEN_FILES)


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
    wrong = [violation for module in modules(ROOT) for violation in violations(module)]
    assert not wrong, "\n" + "\n".join(wrong)


WRONG = [
    ("errors.py", "import secateur.pruning", "secateur.pruning"),
    ("values/keys.py", "from secateur import pruning", "secateur.pruning"),
    ("values/keys.py", "from secateur import prune", "secateur.prune"),
    ("values/keys.py", "import secateur", "secateur"),
    (
        "pruning/leaf.py",
        "from secateur.index.container.index_file import read",
        "secateur.index.container.index_file.read",
    ),
    ("pruning/leaf.py", "from ..index import codec", "secateur.index.codec"),
    ("pruning/deep/leaf.py", "from ... import io", "secateur.io"),
    ("pruning/__init__.py", "from ..io.store import Store", "secateur.io.store.Store"),
    ("pruning/leaf.py", "def f():\n    from secateur.io import store", "secateur.io.store"),
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
    ("io/tables/delta/actions.py", "import fastavro", "fastavro"),
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
    ("values/keys.py", "from secateur.errors import SecateurError"),
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
    ("io/tables/hudi/commits.py", "def f():\n    import fastavro"),
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
    wrong = check(tmp_path, file, source)
    assert len(wrong) == 1, wrong
    line = source.count("\n") + 1
    assert wrong[0].startswith(f"secateur/{file}:{line}: {offence}: ")


@pytest.mark.parametrize(("file", "source"), RIGHT)
def test_a_right_import_is_let_pass(tmp_path: Path, file: str, source: str) -> None:
    assert check(tmp_path, file, source) == []
