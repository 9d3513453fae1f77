"""The rooms of the package: their order, no circle among modules, none too full, and one place for every class name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.support.checks.package_modules import ROOT, Module, imports, modules

ORDER = {  # within a layer: a room imports from itself and from rooms of a lower number, never from others
    "secateur.index": {
        "": 0,  # the modules that lie in index itself
        "container": 1,
        "zones": 2,
        "filters": 3,
        "segments": 4,
        "read": 5,
        "build": 5,
        "compact": 6,
        "advise": 7,
        "verify": 7,
    },
    "secateur.io": {"": -1, "storage": 0, "parquet": 1, "tables": 2, "scan": 3, "spark": 4},
}
FORMATS = "secateur.io.tables"  # a table format is a folder here, and knows no other
BOUNDS = "secateur.pruning.bounds"
MOST_MODULES = 30  # in a folder: as many as one can look over
TWICE = {  # class name -> why it stands in two modules
    "PageHeader": "Thrift's structure in parquet.thrift, and what is decoded of it",
    "Statistics": "a structure in parquet.thrift, whose names thrift_fields keeps; and what pruning needs to know",
}


def module_graph(root: Path) -> dict[str, set[str]]:
    """Every module, and the modules that it imports anywhere, under TYPE_CHECKING and in functions too."""
    known = {module.name: module for module in modules(root)}
    return {name: set(_imported(module, known)) for name, module in known.items()}


def _imported(module: Module, known: Mapping[str, Module]) -> Iterator[str]:
    for _, dotted in imports(module):
        target = dotted if dotted in known else dotted.rpartition(".")[0]
        if target in known and target != module.name and known[target].path.name != "__init__.py":
            yield target


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """The modules of one circle, the first again at its end; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def wrong_ways(graph: Mapping[str, set[str]]) -> list[str]:
    """Imports from a room that comes later in the order."""
    return [
        f"{name} -> {target}"
        for name, targets in sorted(graph.items())
        for target in sorted(targets)
        for layer, order in ORDER.items()
        if name.startswith(layer + ".") and target.startswith(layer + ".")
        if not _may_import(order, room_of(name, layer), room_of(target, layer))
    ]


def _may_import(order: Mapping[str, int], room: str, other: str) -> bool:
    return room == other or order[room] > order[other]


def room_of(name: str, layer: str) -> str:
    """The folder of a module within its layer; empty for the layer itself."""
    parts = name.removeprefix(layer + ".").split(".")
    return parts[0] if len(parts) > 1 else ""


def test_no_module_imports_itself_by_others() -> None:
    assert circle(module_graph(ROOT)) == []


def test_rooms_keep_their_order() -> None:
    assert wrong_ways(module_graph(ROOT)) == []


def test_every_room_is_in_the_order() -> None:
    for layer, order in ORDER.items():
        folder = ROOT / layer.replace(".", "/")
        rooms = {path.parent.relative_to(folder).parts[0] for path in folder.glob("*/**/*.py")}
        assert rooms == set(order) - {""}


def test_bounds_know_no_other_room_of_pruning() -> None:
    """Sets of keys, zone maps and outcomes stand below predicates, and all else, in pruning."""
    upwards = [
        f"{name} -> {target}"
        for name, targets in module_graph(ROOT).items()
        for target in targets
        if name.startswith(BOUNDS + ".") and target.startswith("secateur.pruning.")
        if not target.startswith(BOUNDS + ".")
    ]
    assert upwards == []


def test_table_formats_do_not_know_each_other() -> None:
    crossings = [
        f"{name} -> {target}"
        for name, targets in module_graph(ROOT).items()
        for target in targets
        if format_of(name) and format_of(target) not in (None, format_of(name))
    ]
    assert crossings == []


def format_of(name: str) -> str | None:
    """The table format whose folder a module lies in; None outside of them."""
    return room_of(name, FORMATS) or None if name.startswith(FORMATS + ".") else None


@pytest.mark.parametrize("top", ["secateur", "conformance", "tests", "benchmarks"])
def test_no_folder_is_too_full(top: str) -> None:
    counts = defaultdict(int)
    for path in (ROOT / top).rglob("*.py"):
        counts[path.parent] += path.name != "__init__.py"
    assert {str(folder): n for folder, n in counts.items() if n > MOST_MODULES} == {}


def test_a_public_class_name_stands_in_one_module() -> None:
    places = defaultdict(list)
    for module in modules(ROOT):
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in TWICE:
                places[node.name].append(module.name)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


@pytest.mark.parametrize(
    "source", ["from secateur.b import x", "def f():\n    from secateur import b", "import secateur.b"]
)
def test_a_circle_is_found(tmp_path: Path, source: str) -> None:
    (tmp_path / "secateur").mkdir()
    (tmp_path / "secateur" / "a.py").write_text(source)
    (tmp_path / "secateur" / "b.py").write_text("if TYPE_CHECKING:\n    from secateur.a import y")
    assert sorted(set(circle(module_graph(tmp_path)))) == ["secateur.a", "secateur.b"]


@pytest.mark.parametrize(
    ("name", "target", "is_wrong"),
    [
        ("index.zones.tree", "index.filters.bloom", True),
        ("index.filters.bloom", "index.zones.tree", False),
        ("index.read.view", "index.build.cut", True),
        ("index.model", "index.zones.tree", True),
        ("io.storage.file", "io.parquet.footer", True),
        ("io.spark.plan", "io.scan.plan", False),
    ],
)
def test_a_wrong_way_is_found(name: str, target: str, is_wrong: bool) -> None:
    assert bool(wrong_ways({f"secateur.{name}": {f"secateur.{target}"}})) == is_wrong


def test_unit_tests_mirror_the_package() -> None:
    """The test of a module lies where the module does, under its name: ``tests/unit/index/zones/test_gaps.py``."""
    unit = ROOT / "tests" / "unit"
    mirrored = {
        path: ROOT / "secateur" / path.relative_to(unit).with_name(path.name.removeprefix("test_"))
        for path in unit.rglob("test_*.py")
    }
    assert [str(path) for path, module in mirrored.items() if not module.is_file()] == []
