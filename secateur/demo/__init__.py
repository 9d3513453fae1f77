"""The demo: TPC-H's lineitem in two orders, an index of each, and what queries over them skip.

Every answer is compared with that of plain Spark.
"""

from secateur.demo.lineitem import Copy, DemoNotPossible
from secateur.demo.questions import DemoQuery, questions
from secateur.demo.run import Check, Demo, Events, run_demo
from secateur.demo.trials import Trial

__all__ = ["Check", "Copy", "Demo", "DemoNotPossible", "DemoQuery", "Events", "Trial", "questions", "run_demo"]
