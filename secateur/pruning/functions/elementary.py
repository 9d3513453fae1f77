"""Roots, powers, logarithms and similar functions on intervals of doubles.

Java rounds ``sqrt``, ``rint`` and ``signum`` correctly. The others are those of Java's ``StrictMath``, at most one ulp
off, where numpy's may be off by four. Each is monotone, so the value between two arguments is between theirs, once both
are widened by more than either library can be wrong. On rows they are left to Spark.

Sources: Spark's ``mathExpressions.scala``; the documentation of ``java.lang.StrictMath``; numpy's accuracy tests.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from secateur.pruning.bounds.outcomes import NULL
from secateur.pruning.functions.casts import cast
from secateur.pruning.functions.types import is_numeric
from secateur.pruning.interval import Argument, Function, Interval, Rule, constant, keys_of_numbers, numbers, strict

Values = Callable[[np.ndarray], np.ndarray]
Ends = tuple[np.ndarray, np.ndarray]
_SLACK = 2.0**-48  # 16 ulps
_MOST = np.finfo(np.float64).max


def _unary(
    name: str, ends: Callable[[np.ndarray, np.ndarray], Ends], *, exact: bool = False, rises: bool = False
) -> Rule:
    """Make a function of a double from its least and greatest value between two arguments; `rises`: never decreases."""

    def rule(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
        into = _to_double(arguments[0]) if len(arguments) == 1 else None
        if into is None:
            return None

        def bounds(args: Sequence[Interval]) -> Interval:
            a = into.bounds(args)
            with np.errstate(all="ignore"):
                lower, upper = ends(*_doubles(a))
            return strict(pa.float64(), [a], keys_of_numbers(lower, pa.float64()), keys_of_numbers(upper, pa.float64()))

        return Function(name, pa.float64(), bounds, (int(rises),), exact and into.exact)

    return rule


def _to_double(argument: Argument) -> Function | None:
    return cast(argument.type, pa.float64(), dt.UTC) if is_numeric(argument.type) else None


def _doubles(a: Interval) -> Ends:
    return numbers(a.lower, pa.float64()), numbers(a.upper, pa.float64())


def _constant(argument: Argument) -> float | None:
    """Return a constant argument as a double, if it is finite."""
    into = _to_double(argument)
    if into is None or argument.key is None:
        return None
    keys = into.bounds([constant(argument.type, argument.key, 1)]).lower
    value = float(numbers(keys, pa.float64())[0])
    return value if np.isfinite(value) else None


def _widened(lower: np.ndarray, upper: np.ndarray) -> Ends:
    """Move both ends outwards by more than the libraries differ, even if they overflow; NaN stays."""
    low, high = np.clip(lower, None, _MOST), np.clip(upper, -_MOST, None)
    return np.nextafter(low - np.abs(low) * _SLACK, -np.inf), np.nextafter(high + np.abs(high) * _SLACK, np.inf)


def _sqrt(low: np.ndarray, high: np.ndarray) -> Ends:
    """Compute roots; negative arguments give NaN, which is the greatest."""
    negative = low < 0
    lower = np.where(negative, np.where(high < 0, np.nan, 0.0), np.sqrt(low))
    return lower, np.where(negative, np.nan, np.sqrt(high))


def _rising(values: Values, least: float = -np.inf) -> Callable[[np.ndarray, np.ndarray], Ends]:
    """Make a function that never decreases, and is NaN only for NaN; `least` is its infimum."""

    def ends(low: np.ndarray, high: np.ndarray) -> Ends:
        lower, upper = _widened(values(low), values(high))
        return np.where(lower < least, least, lower), upper

    return ends


# ---- logarithms ------------------------------------------------------------------------------------------------------


def _logarithm(name: str, values: Values, asymptote: float = 0.0) -> Rule:
    """Make a logarithm that is NULL at and below the asymptote."""

    def rule(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
        into = _to_double(arguments[0]) if len(arguments) == 1 else None
        if into is None:
            return None
        return Function(
            name, pa.float64(), lambda args: _logarithms(into.bounds(args), values, asymptote, 1), (0,), exact=False
        )

    return rule


def _log(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Compute the natural logarithm, or that to a constant base."""
    if len(arguments) == 1:
        return _logarithm("ln", np.log)(arguments, zone)
    into, base = (_to_double(arguments[1]), _constant(arguments[0])) if len(arguments) == 2 else (None, None)
    if into is None or base is None or base <= 0 or base == 1:
        return None
    divisor = np.log(base)
    sign = 1 if divisor > 0 else -1

    def bounds(args: Sequence[Interval]) -> Interval:
        return _logarithms(into.bounds(args[1:]), lambda x: np.log(x) / divisor, 0.0, sign)

    return Function(f"log[{base!r}]", pa.float64(), bounds, (0, 0), exact=False)


def _logarithms(a: Interval, values: Values, asymptote: float, sign: int) -> Interval:
    """Compute the logarithm of the part of an interval above the asymptote; the rest is NULL."""
    low, high = _doubles(a)
    with np.errstate(all="ignore"):
        inside = low > asymptote
        at_low = np.where(inside | np.isnan(low), values(np.where(inside, low, np.nan)), -np.inf * sign)
        at_high = values(np.where(high > asymptote, high, np.nan))
        if sign > 0:
            lower, upper = _widened(at_low, at_high)
        else:  # NaN stays the greatest
            finite = np.where(np.isnan(high), -np.inf, at_high)
            lower, upper = _widened(np.where(np.isnan(low), np.nan, finite), at_low)
            upper = np.where(np.isnan(high), np.nan, upper)
    interval = strict(pa.float64(), [a], keys_of_numbers(lower, pa.float64()), keys_of_numbers(upper, pa.float64()))
    nothing = high <= asymptote
    null = np.where((low <= asymptote) & (a.value != 0), a.null | np.uint8(NULL), a.null)
    return replace(interval, value=np.where(nothing, np.uint8(0), interval.value), null=null)


# ---- powers ----------------------------------------------------------------------------------------------------------


def _pow(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Compute a power with a constant exponent, or of a constant base."""
    if len(arguments) != 2 or not all(is_numeric(a.type) for a in arguments):
        return None
    exponent, base = _constant(arguments[1]), _constant(arguments[0])
    if exponent is not None and exponent != 0:
        return _function_of("pow", arguments, 0, f"x, {exponent!r}", lambda a: _powers(a, exponent))
    if base is not None and base > 0 and base != 1:
        return _function_of("pow", arguments, 1, f"{base!r}, x", lambda a: _exponentials(a, base))
    return None


def _function_of(
    name: str, arguments: Sequence[Argument], at: int, parameters: str, ends: Callable[[Interval], Ends]
) -> Function | None:
    into = _to_double(arguments[at])
    if into is None:
        return None

    def bounds(args: Sequence[Interval]) -> Interval:
        a = into.bounds([args[at]])
        with np.errstate(all="ignore"):
            lower, upper = ends(a)
        return strict(pa.float64(), [a], keys_of_numbers(lower, pa.float64()), keys_of_numbers(upper, pa.float64()))

    return Function(f"{name}[{parameters}]", pa.float64(), bounds, (0, 0), exact=False)


def _powers(a: Interval, exponent: float) -> Ends:
    """Return bounds: monotone for positive bases, and for whole exponents on negative bases; else unbounded."""
    low, high = _doubles(a)
    top = np.where(np.isnan(high), np.inf, high)
    at_low, at_high = np.power(low, exponent), np.power(top, exponent)
    lower, upper = np.full_like(low, -np.inf), np.full_like(low, np.nan)
    is_even, is_odd = exponent % 2 == 0, exponent % 2 == 1
    if exponent > 0:
        rises = (low >= 0) | is_odd
        lower, upper = np.where(rises, at_low, lower), np.where(rises, at_high, upper)
        if is_even:
            crosses = (low < 0) & (top > 0)
            falls = (low < 0) & (top <= 0)
            lower = np.where(crosses, 0.0, np.where(falls, at_high, lower))
            upper = np.where(crosses, np.fmax(at_low, at_high), np.where(falls, at_low, upper))
    else:
        falls = low > 0
        lower, upper = np.where(falls, at_high, lower), np.where(falls, at_low, upper)
    lower, upper = _widened(lower, upper)
    return np.where(np.isnan(low), np.nan, lower), np.where(np.isnan(high), np.nan, upper)


def _exponentials(a: Interval, base: float) -> Ends:
    low, high = _doubles(a)
    top = np.where(np.isnan(high), np.inf, high)
    at_low, at_top = np.power(base, low), np.power(base, top)
    lower, upper = _widened(*((at_low, at_top) if base > 1 else (at_top, at_low)))
    lower = np.where(lower < 0, 0.0, lower)
    return np.where(np.isnan(low), np.nan, lower), np.where(np.isnan(high), np.nan, upper)


# ---- NaN -------------------------------------------------------------------------------------------------------------


def _nanvl(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Return the first argument, or the second where the first is NaN."""
    if len(arguments) != 2 or not all(is_numeric(a.type) for a in arguments):
        return None
    type_ = pa.float32() if all(a.type == pa.float32() for a in arguments) else pa.float64()
    casts = [cast(a.type, type_, dt.UTC) for a in arguments]
    into = [c for c in casts if c is not None]
    if len(into) < len(casts):
        return None

    def bounds(args: Sequence[Interval]) -> Interval:
        first, second = (c.bounds([a]) for c, a in zip(into, args, strict=True))
        (low, high), (least, greatest) = ((numbers(k, type_) for k in (a.lower, a.upper)) for a in (first, second))
        never, always = ~np.isnan(high) | (first.value == 0), np.isnan(low) & (first.value != 0)
        top = np.where(np.isnan(high), np.inf, high)
        reached = ~never & (second.value != 0)
        lower = np.where(always, least, np.where(reached, np.fmin(low, least), low))
        upper = np.where(always, greatest, np.where(reached, np.maximum(top, greatest), top))  # NaN if either may be
        null = np.where(never, first.null, first.null | second.null)
        value = np.where(always, second.value, first.value)
        fails = first.fails | (second.fails & ~never)
        keys = keys_of_numbers(lower, type_), keys_of_numbers(upper, type_)
        return Interval(type_, *keys, value, null, fails)

    return Function(f"nanvl[{type_}]", type_, bounds, (0, 0), all(c.exact for c in into))


RULES: dict[str, Rule] = {
    "sqrt": _unary("sqrt", _sqrt, exact=True),
    "cbrt": _unary("cbrt", _rising(np.cbrt)),
    "exp": _unary("exp", _rising(np.exp, 0.0)),
    "expm1": _unary("expm1", _rising(np.expm1, -1.0)),
    "rint": _unary("rint", lambda low, high: (np.rint(low), np.rint(high)), exact=True, rises=True),
    "signum": _unary("signum", lambda low, high: (np.sign(low), np.sign(high)), exact=True, rises=True),
    "ln": _logarithm("ln", np.log),
    "log": _log,
    "log2": _logarithm("log2", np.log2),
    "log10": _logarithm("log10", np.log10),
    "log1p": _logarithm("log1p", np.log1p, -1.0),
    "pow": _pow,
    "nanvl": _nanvl,
}
