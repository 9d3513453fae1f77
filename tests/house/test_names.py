"""Names say what a thing is: no public name and no variable is one of a few words that say nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.support.checks.package_modules import ROOT, modules

FOLDERS = ("secateur", "benchmarks", "conformance", "fuzz")
VAGUE = {"each", "found", "held", "it", "made", "mine", "own", "robbed", "settle", "told"}
VAGUE_VARIABLES = {"each", "found", "mine", "own", "shown", "sure", "told"}


def public_names(body: list[ast.stmt]) -> Iterator[str]:
    """The names of classes, functions and fields, and of the parameters of these functions."""
    for node in body:
        match node:
            case ast.ClassDef(name=name, body=inner):
                yield name
                yield from public_names(inner)
            case ast.FunctionDef(name=name, args=arguments):
                yield name
                yield from (a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)]):
                yield name


@pytest.mark.parametrize("folder", FOLDERS)
def test_public_names_say_what_a_thing_is(folder: str) -> None:
    parsed = modules(ROOT, folder)
    vague = [
        f"{module.file}: {name}"
        for module in parsed
        for name in public_names(module.tree.body)
        if name.strip("_").lower() in VAGUE
    ]
    assert parsed
    assert not vague


def variables(tree: ast.AST) -> Iterator[str]:
    """The names that are assigned, looped over, or parameters, at any depth."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name


@pytest.mark.parametrize("folder", [*FOLDERS, "tests"])
def test_variables_say_what_they_hold(folder: str) -> None:
    parsed = modules(ROOT, folder)
    vague = [
        f"{module.file}: {name}"
        for module in parsed
        for name in variables(module.tree)
        if name.strip("_") in VAGUE_VARIABLES
    ]
    assert parsed
    assert not vague


def test_a_vague_variable_is_seen() -> None:
    tree = ast.parse("def f(told):\n    found, n = g()\n    return [each for each in found if (own := each)]")
    assert sorted(variables(tree)) == ["each", "found", "n", "own", "told"]


def test_a_vague_name_is_seen() -> None:
    tree = ast.parse("def f(found): ...\nclass A:\n    told: int\n    def each(self): ...\nown = 1\n")
    assert list(public_names(tree.body)) == ["f", "found", "A", "told", "each", "self", "own"]
