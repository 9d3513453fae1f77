"""Index files are data, never code: nothing in the package can turn bytes into code or objects of any class.

The one exception is what Spark does itself: closures and tasks go from driver to executors through Spark's own
cloudpickle, over Spark's own connections. `io/spark/source_tasks.py` packs what it gives Spark in a task with the same,
and `planner/python_lists.py` packs a function of PySpark's, to know its bytes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.support.checks.package_modules import PUBLIC_FACE, ROOT, Module, imports, is_in, modules
from tests.support.profiles import takes_seconds

UNPICKLERS = (
    "pickle",
    "_pickle",
    "cPickle",
    "marshal",
    "shelve",
    "dill",
    "joblib",
    "cloudpickle",
    "yaml",
    "jsonpickle",
)
SPARKS_OWN = {  # where Spark's own serializers pack
    "secateur/io/spark/source_tasks.py": {"pyspark.cloudpickle"},
    "secateur/io/spark/planner/python_lists.py": {
        "pyspark.serializers.BatchedSerializer",
        "pyspark.serializers.CloudPickleSerializer",
    },
}
CODE = {"eval", "exec", "compile", "__import__"}


def offences(module: Module) -> Iterator[str]:
    for line, imported in imports(module):
        packs = is_in(imported, "pyspark.serializers") or is_in(imported, "pyspark.cloudpickle")
        unpacks = any(is_in(imported, unpickler) for unpickler in UNPICKLERS)
        if unpacks or (packs and imported not in SPARKS_OWN.get(module.file, ())):
            yield f"{module.file}:{line}: {imported}"
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(func=ast.Name(name)) if name in CODE:
                yield f"{module.file}:{node.lineno}: {name}()"
            case ast.keyword(arg="allow_pickle"):
                yield f"{module.file}:{node.value.lineno}: allow_pickle"
            case ast.Attribute(attr="read_pickle"):
                yield f"{module.file}:{node.lineno}: read_pickle"
            case ast.Call(func=ast.Name("import_module") | ast.Attribute(attr="import_module"), args=[name, *_]):
                if not isinstance(name, ast.Constant) and module.layer != PUBLIC_FACE:
                    yield f"{module.file}:{node.lineno}: a module by a name that may come from anywhere"


@takes_seconds
def test_nothing_is_unpickled_or_run() -> None:
    every_offence = [offence for module in modules(ROOT) for offence in offences(module)]
    assert not every_offence, "\n" + "\n".join(every_offence)


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "def f():\n    import marshal",
        "import yaml",
        "from pyspark import cloudpickle",
        "from pyspark.serializers import CPickleSerializer",
        "import importlib\nimportlib.import_module('dill')",
        "eval('1')",
        "exec(text)",
        "import numpy as np\nnp.load('x', allow_pickle=True)",
        "import pandas as pd\npd.read_pickle('x')",
        "from importlib import import_module\nimport_module(name)",
        "import importlib\nimportlib.import_module(name)",
    ],
)
def test_what_unpickles_or_runs_is_found(source: str) -> None:
    module = Module(ROOT / "secateur/io/x.py", "secateur/io/x.py", ast.parse(source))
    assert list(offences(module))


@pytest.mark.parametrize("file", SPARKS_OWN)
def test_sparks_own_serializers_pack_where_that_is_said(file: str) -> None:
    source = (ROOT / file).read_text()
    assert list(offences(Module(ROOT / file, file, ast.parse(source)))) == []
    elsewhere = "secateur/io/spark/to_spark.py"
    assert list(offences(Module(ROOT / elsewhere, elsewhere, ast.parse(source))))
