"""A frozen dataclass is a value, in which nothing changes but what is computed once; an assert says why it holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.support.checks.package_modules import ROOT, modules

MUTABLE = ("list[", "dict[", "set[", "deque[", "defaultdict[", "OrderedDict[", "threading.")
LISTS_OF_USERS = {"Affected": "its lists are what a user asked for, new in every call"}


def mutable_fields(tree: ast.Module) -> Iterator[str]:
    """The fields of frozen dataclasses that can be changed in place, by their types."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef) or not any("frozen=True" in ast.unparse(d) for d in node.decorator_list):
            continue
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and ast.unparse(field.annotation).startswith(MUTABLE):
                yield f"{node.name}.{ast.unparse(field.target)}"


def test_frozen_dataclasses_hold_nothing_that_changes() -> None:
    mutable = {field for module in modules(ROOT) for field in mutable_fields(module.tree)}
    assert not {field for field in mutable if field.split(".")[0] not in LISTS_OF_USERS}


def test_a_list_in_a_frozen_dataclass_is_found() -> None:
    text = "@dataclass(frozen=True)\nclass A:\n    x: int\n    y: list[int]\n@dataclass\nclass B:\n    z: list[int]\n"
    assert list(mutable_fields(ast.parse(text))) == ["A.y"]


def test_every_assert_of_the_package_says_why_it_holds() -> None:
    silent = [
        f"{module.file}:{node.lineno}"
        for module in modules(ROOT)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Assert) and node.msg is None
    ]
    assert not silent
