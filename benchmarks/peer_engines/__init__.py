"""The same questions of the same rows by other engines, each in an environment and a process of its own.

``python -m benchmarks.peer_engines`` runs all, or those that are named; ``--list`` names them. What each measured is
kept as JSON beside the data, and ``--page docs/peers.md`` writes the page of all that is kept.

The parent makes the table, the questions (:mod:`.questions`) and, by the pins of :mod:`.peers`, the environments. Each
peer runs as ``python -m benchmarks.peer_engines.process``, which needs nothing but the peer and pyarrow: a module of
:mod:`.engines` opens the table, :mod:`.measured` asks.
"""
