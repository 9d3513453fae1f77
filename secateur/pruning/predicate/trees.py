"""Trees of frozen nodes of any depth: text, hashes, equality and pickles without recursion.

A node may have several parents: ``x BETWEEN 1 AND 2`` has one `x`. So a tree is a directed acyclic graph. Everything
here except text visits each node once; a tree of copies could be exponential in its depth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Generator, Hashable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, TypeVar

_HASH = "hash of the tree"  # attribute in which a node caches it


class Node:
    """A frozen dataclass (``eq=False``) whose fields hold nodes, tuples of nodes, and other values."""

    def sql_parts(self) -> Iterable[object]:
        """Return the text of the node in parts: strings, and nodes below it."""
        raise NotImplementedError

    def __str__(self) -> str:
        return written(self)

    def __repr__(self) -> str:
        return str(self)

    def __hash__(self) -> int:
        cached = self.__dict__.get(_HASH)
        return _hashed(self) if cached is None else cached

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self is other or _are_equal(self, other)

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (_flattened(self),)


# ---- text ------------------------------------------------------------------------------------------------------------


def written(
    root: Node, sql_parts: Callable[[Node], Iterable[object]] = lambda node: node.sql_parts(), most: float = math.inf
) -> str:
    """Print a tree as text, part by part of each node; if the text is long, at least its first `most` characters."""
    texts: list[str] = []
    pending: list[object] = [root]
    length = 0
    while pending and length <= most:
        part = pending.pop()
        if isinstance(part, Node):
            pending.extend(reversed(tuple(sql_parts(part))))
        else:
            texts.append(str(part))
            length += len(texts[-1])
    return "".join(texts)


def joined(separator: str, parts: Iterable[object]) -> Iterator[object]:
    """Join parts with a separator."""
    for i, part in enumerate(parts):
        if i:
            yield separator
        yield part


# ---- equality --------------------------------------------------------------------------------------------------------


@cache
def _names(class_: Hashable, *, compared: bool) -> tuple[str, ...]:
    """Return the fields of a node class: all, or those that equality compares."""
    return tuple(field.name for field in fields(class_) if field.compare or not compared)  # type: ignore[arg-type]


def _values(node: Node, *, compared: bool) -> tuple[Any, ...]:
    class_: Any = type(node)
    return tuple(getattr(node, name) for name in _names(class_, compared=compared))


def _below(value: object) -> Iterator[Node]:
    """Yield the nodes in the value of a field."""
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _below(item)


def _hashed(root: Node) -> int:
    """Return the hash of a node; it is cached there and in all nodes below."""
    pending = [root]
    while pending:
        node = pending[-1]
        values = _values(node, compared=True)
        first = [below for below in _below(values) if _HASH not in below.__dict__]
        if first:
            pending += first
        else:
            node.__dict__[_HASH] = hash((type(node), values))
            pending.pop()
    return int(root.__dict__[_HASH])


def _are_equal(one: object, other: object) -> bool:
    pending, visited = [(one, other)], set()
    while pending:
        a, b = pending.pop()
        if a is b or (id(a), id(b)) in visited:
            continue
        match a, b:
            case tuple(), tuple():
                if len(a) != len(b):
                    return False
                pending += zip(a, b, strict=True)
            case Node(), Node():
                if type(a) is not type(b) or hash(a) != hash(b):
                    return False
                visited.add((id(a), id(b)))
                pending += zip(_values(a, compared=True), _values(b, compared=True), strict=True)
            case _ if a != b:
                return False
    return True


# ---- pickles ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _At:
    """A reference to the node at a position of a list."""

    index: int


Flattened = list[tuple[type[Node], tuple[object, ...]]]  # classes and field values of nodes, children first


def _flattened(root: Node) -> Flattened:
    places: dict[int, _At] = {}
    listed: Flattened = []
    pending = [root]
    while pending:
        node = pending[-1]
        values = _values(node, compared=False)
        first = [below for below in _below(values) if id(below) not in places]
        if first:
            pending += first
            continue
        pending.pop()
        if id(node) not in places:
            places[id(node)] = _At(len(listed))
            listed.append((type(node), tuple(_replaced(value, lambda below: places[id(below)]) for value in values)))
    return listed


def _restored(listed: Flattened) -> Node:
    nodes: list[Node] = []
    for class_, values in listed:
        nodes.append(class_(*(_placed(value, nodes) for value in values)))
    return nodes[-1]


def _replaced(value: object, place: Callable[[Node], _At]) -> object:
    match value:
        case Node():
            return place(value)
        case tuple():
            return tuple(_replaced(item, place) for item in value)
        case _:
            return value


def _placed(value: object, nodes: list[Node]) -> object:
    match value:
        case _At(index):
            return nodes[index]
        case tuple():
            return tuple(_placed(item, nodes) for item in value)
        case _:
            return value


# ---- copies ----------------------------------------------------------------------------------------------------------


def rebuilt(root: Node, change: Callable[[Node], Node]) -> Node:
    """Copy a tree from its leaves up, with `change` of every node; a node with several parents stays one."""
    nodes: list[Node] = []
    for class_, values in _flattened(root):
        nodes.append(change(class_(*(_placed(value, nodes) for value in values))))
    return nodes[-1]


# ---- walks -----------------------------------------------------------------------------------------------------------

Visited = TypeVar("Visited")
Result = TypeVar("Result")
Steps = Generator[Any, Any, Result]  # yields an argument and is sent its result


def preorder(root: Visited, children: Callable[[Visited], Iterable[Visited]]) -> Iterator[Visited]:
    """Yield a node and all below it, from left to right, each once."""
    pending, visited = [root], set()
    while pending:
        node = pending.pop()
        if id(node) not in visited:
            visited.add(id(node))
            yield node
            pending.extend(reversed(tuple(children(node))))


def unrolled(
    step: Callable[[Any], Steps[Result]],
    root: object,
    known: dict[tuple[Any, ...], tuple[object, Any]],
    kept: Container[int] | None = None,
) -> Result:
    """Run a recursive function without recursion: `step` yields the argument instead of calling itself.

    Each argument is computed once. `known` holds the results; a node is identified by its id, a tuple by the id of its
    first item, a node, and the values of the others. `kept` has the ids of the nodes whose results are cached because
    they are requested again, if the results are too large to cache all; None means all.
    """
    arguments, frames = [root], [step(root)]
    result: Any = None
    error: Exception | None = None
    while True:
        try:
            wanted = frames[-1].send(result) if error is None else frames[-1].throw(error)
        except StopIteration as end:
            result, error = end.value, None
            argument = arguments.pop()
            frames.pop()
            key = _key(argument)
            if kept is None or key[0] in kept:
                known[key] = argument, result
        except Exception as raised:
            error = raised
            arguments.pop()
            frames.pop()
        else:
            error = None
            key = _key(wanted)
            if key in known:
                result = known[key][1]
            else:
                result = None
                arguments.append(wanted)
                frames.append(step(wanted))
        if not frames:
            if error is not None:
                raise error
            return result


def _key(argument: object) -> tuple[Any, ...]:
    return (id(argument[0]), *argument[1:]) if isinstance(argument, tuple) else (id(argument),)


def each_of(arguments: Iterable[Any]) -> Steps[list[Any]]:
    """Collect the results for several arguments, for a step that needs them all."""
    results = []
    for argument in arguments:
        results.append((yield argument))  # noqa: PERF401
    return results
