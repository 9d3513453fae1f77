"""Benchmarks: what secateur costs and what it prunes, each figure beside a floor or a peer measured in the same run.

Run ``python -m benchmarks`` for all workloads, or name some; ``--list`` names them. A figure is a ratio: the time,
size or count of the thing measured over that of its reference. Absolute times depend on the machine; ratios hardly do.

``--json`` prints one object:

==================  ===================================================================================
``environment``     ``python``, ``numpy``, ``pyarrow``, ``machine``, ``cpus``, and ``load``, the load average at
                    the start: above 0 the machine has other work, and times are noisy
``scale``           the factor that sizes were multiplied by
``results``         one object per workload, in the order they ran
==================  ===================================================================================

A result has ``workload``, ``description``, ``seconds`` (of the whole workload, data generation included), ``sizes``
(what was measured over, by name), ``ratios``, ``kept`` and ``notes``. A ratio has

==================  ===================================================================================
``subject``         what was measured
``value``           its figure, in ``unit``: s, B, B/key, B/s, keys/s, blocks, reads,
                    round trips, of all (a share)
``reference``       what it is compared with: a floor, a peer, a formula, or a time that is the goal
``reference_value``  that figure
``ratio``           ``value / reference_value``; null where the reference is 0
``low``, ``high``   quartiles of the ratio over paired repetitions; null where it was not repeated
``goal``            the ratio not to exceed; null where none is set
==================  ===================================================================================

An element of ``kept`` says how much of a table a predicate left: ``table``, ``predicate``, ``unit`` (blocks, pages,
rows, bytes), ``total``, ``ideal`` (units that hold a match, or the matching rows; null where it was not counted),
``kept`` (units left, by engine) and ``pruned`` (units that each technique pruned of those left before it; empty where
techniques are not counted apart).
"""
