"""The planner's Java classes that every session compiles name no class of Iceberg or Delta, which it may lack."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import MagicMock

import pytest

from secateur.io.spark.planner.compiled import DELTA, FIRST, ICEBERG, RULE, SOURCES, TABLE, compiled

OF_OTHERS = ("org.apache.iceberg.", "org.apache.spark.sql.delta.", "io.delta.")


def code(text: str) -> str:
    """A source without comments and texts."""
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"', " ", text, flags=re.DOTALL)


CLASSES = {path.name.removesuffix(".java"): code(path.read_text(encoding="utf-8")) for path in SOURCES.iterdir()}


def compiled_with(name: str) -> set[str]:
    """The classes that a class names, those that they name, and so on."""
    reached, pending = {name}, [name]
    while pending:
        named = set(re.findall(r"\w+", CLASSES[pending.pop()])) & CLASSES.keys() - reached
        reached |= named
        pending += named
    return reached


@pytest.mark.parametrize("name", [TABLE, RULE])
def test_classes_of_all_sessions_need_spark_alone(name: str) -> None:
    assert len(compiled_with(name)) > 10
    needing = {part for part in compiled_with(name) if any(package in CLASSES[part] for package in OF_OTHERS)}
    assert not needing


def test_classes_of_iceberg_are_seen() -> None:
    """So the test above can fail."""
    for name in (ICEBERG, FIRST):
        assert any("org.apache.iceberg." in CLASSES[part] for part in compiled_with(name))
    assert DELTA in CLASSES


def slow_loader(*_: object) -> MagicMock:
    time.sleep(0.05)
    return MagicMock()


def test_threads_share_one_class_loader() -> None:
    """Else py4j calls a method of one loader's class on an object of the other's, which fails from then on."""
    gateway = MagicMock()
    made = gateway.jvm.org.codehaus.janino.JavaSourceClassLoader
    made.side_effect = slow_loader
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda name: compiled(gateway, name), [RULE, TABLE, RULE, TABLE]))
    assert made.call_count == 1
