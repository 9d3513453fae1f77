"""The classes of bugs by which pruning engines have lost rows, as cases that any engine can be held to.

Nothing here knows how an engine prunes. A case writes a table step by step, and asks an :class:`~.engine.Engine` which
rows match; Spark, over the rows themselves, says which do.
"""
