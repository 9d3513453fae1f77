"""The total order of values, and their canonical bytes.

Every value with an order is represented by a *key*. A key orders as Spark orders the value:

=====================  ==========================================================================
type                   key
=====================  ==========================================================================
boolean, integers      the integer
date                   days since 1970-01-01
timestamp (both)       microseconds since 1970-01-01 (UTC, or local without zone)
decimal(p <= 18)       the unscaled integer at the column's scale
float, double          the IEEE bits of the double, made monotone: -0.0 is 0.0, NaN is the greatest
decimal(p > 18)        the unscaled integer, 128 bits
string, binary         the bytes, unsigned (strings: UTF-8)
=====================  ==========================================================================

One key is a Python ``int`` or ``bytes``; many are :class:`Keys`, tuples of numpy words compared from left
to right. Float keys make NaN an ordinary greatest value, so nothing that compares keys knows about NaN.
"""
