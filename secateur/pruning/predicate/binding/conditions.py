"""Conditions on one operand: whether its value is in a set of keys, and whether its text matches a pattern.

What functions of one column ask is pulled back to the column, where they allow it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa

from secateur.pruning.bounds import rangeset
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.functions.text import LONGEST, TRIMS, unfolded
from secateur.pruning.interval import constant, of_zones
from secateur.pruning.predicate.binding.typed_constants import NoRule
from secateur.pruning.predicate.bound import Apply, Constant, Field, Missing, OfValue, Operand, TextMatch, Within
from secateur.pruning.predicate.calls import escaped
from secateur.pruning.predicate.inverse import pull_back, strictly
from secateur.pruning.predicate.nodes import And, Not, Or, Predicate, Sql, Truth
from secateur.pruning.predicate.patterns.finite_patterns import matching_texts
from secateur.pruning.predicate.patterns.like import Pattern, encoded, read_pattern
from secateur.pruning.predicate.patterns.regular_expressions import literal_parts, literal_start, token_of, tokens_of
from secateur.pruning.predicate.patterns.substrings import Alternatives, Substring, alternatives_of, anywhere, in_bytes
from secateur.pruning.predicate.patterns.text_tests import InLowerCase, TextTest, ilike, in_lower_case, like, rlike
from secateur.pruning.predicate.patterns.trimming import untrimmed
from secateur.values.kinds import Kind

_CASES = ("lower", "upper", "initcap")
_PARTS = ("substring[", "split_part[", "split[")  # functions whose values are contiguous parts of a text


def within(operand: Operand, ranges: RangeSet, sql: Sql) -> Predicate:
    """Test whether an operand is in a set of keys; pulled back to the column below it if its functions allow.

    Keys of the column for which a function wraps around, or is NULL, are handled separately.
    """
    if isinstance(operand, Constant):
        if operand.key is None:
            return Truth(None)
        return Truth(bool(ranges.contains(constant(operand.type, operand.key, 1).lower)[0]))
    plain = strictly(operand)
    if (test := pull_back(plain, ranges)) is not None:
        if test.fails is None or plain is operand:
            return Within(test.field, test.ranges, sql, test.fails)
        elsewhere = Within(test.field, rangeset.intersection(test.ranges, rangeset.complement(test.fails)), sql)
        return Or((elsewhere, And((Within(test.field, test.fails, sql), Within(operand, ranges, sql)))))
    if isinstance(operand, Apply) and operand.function.name in _CASES:
        prefix = unfolded(operand.function.name, ranges) or rangeset.everything(Kind.BYTES)
        if operand.function.name != "lower":  # ß and ligatures become ASCII: filters could not use such texts
            return TextMatch(operand.arguments[0], OfValue(operand, ranges), prefix, sql)
        alternatives = in_bytes(alternatives_of(ranges), folded=True)
        return TextMatch(operand.arguments[0], in_lower_case(ranges), prefix, sql, alternatives, folded=True)
    if isinstance(operand, Apply) and operand.function.name.startswith(("instr[", "locate[")):
        return _placed(operand, ranges, sql)
    if isinstance(operand, Apply) and operand.function.name in TRIMS:
        return _trimmed(operand, ranges, alternatives_of(ranges), sql)
    if isinstance(operand, Apply) and operand.function.name.startswith(_PARTS) and not _may_fail(operand):
        return _part(operand, ranges, alternatives_of(ranges), sql)
    return Within(operand, ranges, sql)


def missing(operand: Operand, sql: Sql) -> Predicate:
    """Test for NULL; functions of clocks are NULL exactly if their argument is, in any zone."""
    while isinstance(operand, Apply) and operand.function.is_steady is not None:
        moving = [argument for argument in operand.arguments if not isinstance(argument, Constant)]
        if len(moving) != 1 or any(isinstance(a, Constant) and a.key is None for a in operand.arguments):
            break
        (operand,) = moving
    return Truth(operand.key is None) if isinstance(operand, Constant) else Missing(operand, sql)


def like_leaf(operand: Operand, pattern: Pattern, sql: Sql) -> Predicate:
    """Test text by a pattern of LIKE: by keys alone where it is a text or a prefix. Raises NoRule."""
    if operand.type != pa.string():
        raise NoRule(f"LIKE on a {operand.type} has no rule")
    if pattern.is_literal:
        return within(operand, rangeset.points(Kind.BYTES, [pattern.prefix]), sql)
    if pattern.is_prefix:
        return within(operand, rangeset.starting_with(pattern.prefix), sql)
    return _matching(operand, like(pattern), pattern.alternatives, pattern.prefix, sql)


def ilike_leaf(lower: Operand, pattern: Pattern, sql: Sql) -> Predicate:
    """Test text in lower case by a pattern, which Spark puts in lower case too."""
    leaf = like_leaf(lower, pattern.in_lower_case(), sql)
    return replace(leaf, test=ilike(pattern)) if isinstance(leaf, TextMatch) else leaf


def rlike_leaf(operand: Operand, pattern: str, sql: Sql) -> Predicate:
    """Test text by a regular expression of Java: by keys alone where it lists texts. Raises NoRule."""
    if operand.type != pa.string():
        raise NoRule(f"RLIKE on a {operand.type} has no rule")
    if (ranges := matching_texts(pattern)) is not None:
        return within(operand, ranges, sql)
    word, test = token_of(pattern), rlike(pattern)
    if word is None:
        return _matching(operand, test, literal_parts(pattern), encoded(literal_start(pattern)), sql)
    leaf = _matching(operand, test, ((Substring(encoded(word)),),), b"", sql)
    return replace(leaf, tokens=tokens_of(word, folded=leaf.folded)) if leaf.alternatives else leaf


def _matching(operand: Operand, test: TextTest, alternatives: Alternatives, prefix: bytes, sql: Sql) -> TextMatch:
    """Test decoded text, which needs the text itself: of a column here, of anything else only in Spark."""
    starts = rangeset.starting_with(prefix.partition(encoded("\ufffd"))[0])
    if isinstance(operand, Field):
        return TextMatch(operand, test, starts, sql, in_bytes(alternatives, folded=False))
    if isinstance(operand, Apply) and operand.function.name in TRIMS:
        return _trimmed(operand, test, in_bytes(alternatives, folded=False), sql)
    leaf = within(operand, starts, sql)
    match leaf:
        case TextMatch(inner, InLowerCase(), ranges):
            certain = in_bytes(alternatives, folded=True) if isinstance(inner, Field) else ()
            return TextMatch(inner, in_lower_case(test), ranges, sql, certain, folded=True)
        case Within(inner, ranges, _, None) | TextMatch(inner, _, ranges, _):
            return TextMatch(inner, OfValue(operand, test), ranges, sql)
        case _:
            raise NoRule("a pattern on this expression has no rule")


def _trimmed(operand: Apply, test: RangeSet | TextTest, alternatives: Alternatives, sql: Sql) -> TextMatch:
    """Test trimmed text; TRUE only if one of the alternatives is contained."""
    name, (text,) = operand.function.name, operand.arguments
    starts, loose = untrimmed(name, alternatives)
    certain = in_bytes(loose, folded=False) if isinstance(text, Field) else ()
    return TextMatch(text, OfValue(operand, test), starts, sql, certain)


def _part(operand: Apply, test: RangeSet | TextTest, alternatives: Alternatives, sql: Sql) -> Predicate:
    """Test a part of a text, which contains what the part does."""
    text, loose = operand.arguments[0], anywhere(alternatives)
    certain = in_bytes(loose, folded=False) if isinstance(text, Field) else ()
    return TextMatch(text, OfValue(operand, test), rangeset.everything(Kind.BYTES), sql, certain)


def _may_fail(operand: Apply) -> bool:
    """Whether a function of a text may fail, or be NULL though its text is not."""
    whole = [of_zones(None, argument.type, 1) for argument in operand.arguments]
    interval = operand.function.bounds([replace(part, null=np.zeros(1, np.uint8)) for part in whole])
    return bool(interval.fails[0] or interval.null[0])


def _placed(operand: Apply, ranges: RangeSet, sql: Sql) -> Predicate:
    """Test the place of a part in a text: at 1 or later, or 0 if it is nowhere."""
    plain = Within(operand, ranges, sql)
    is_instr = operand.function.name.startswith("instr[")
    text, part = operand.arguments[:2] if is_instr else operand.arguments[1::-1]
    literal = escaped(part.key.decode()) if isinstance(part, Constant) and isinstance(part.key, bytes) else None
    holds_none = bool(ranges.contains(constant(operand.type, 0, 1).lower)[0])
    places = rangeset.between(Kind.WORD, 1, LONGEST + 1)
    asked = rangeset.intersection(ranges, places)
    if literal is None or (holds_none and not asked.is_empty):
        return plain
    with suppress(NoRule):
        contained = like_leaf(text, read_pattern(f"%{literal}%", "\\", sql), sql)
        if holds_none:
            return Not(contained) if is_instr else plain
        if is_instr and rangeset.intersection(rangeset.complement(ranges), places).is_empty:
            return contained
        if is_instr and asked.points is not None and asked.points.tolist() == [1]:
            return like_leaf(text, read_pattern(f"{literal}%", "\\", sql), sql)
        return And((contained, plain))
    return plain
