"""The 47 classes, by groups; importing this registers them all."""

from conformance.classes import coverage
from conformance.registry import CLASSES

__all__ = ["CLASSES", "coverage"]
