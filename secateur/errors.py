"""Errors that callers see: each says what is wrong, which value, and what to do."""

from __future__ import annotations


class SecateurError(Exception):
    """Base class of every error raised on purpose by this package."""


class TableNotFound(SecateurError):
    """The path names no table."""


class UnsupportedTable(SecateurError):
    """The directory is a table of a format whose live files its Parquet files alone do not tell."""


class UnknownSnapshot(SecateurError):
    """The table has no such snapshot, branch or tag, or had none at that time."""


class InvalidParquet(SecateurError):
    """A file is not Parquet, is truncated, or holds contradictory metadata."""


class OldCalendar(InvalidParquet):
    """A file holds days or instants of the calendar of Spark 2, from a time for which only Spark converts them."""


class NotInFile(SecateurError):
    """A file lacks a column whose values its partition tells, and was opened without being told them."""


class IncompatibleSchemas(SecateurError):
    """Two files of one table give a column types that no widening reconciles."""


class UnknownColumn(SecateurError):
    """A predicate or a column list names a column that the table does not have."""


class InvalidOption(SecateurError, ValueError):
    """A build was asked for what cannot be made, or in words that cannot be read."""


class UnknownBlock(SecateurError):
    """A file or row group that the table does not have was asked about."""


class AmbiguousColumn(SecateurError):
    """A name matches several columns when case is ignored."""


class InvalidPredicate(SecateurError):
    """A predicate does not parse; the message carries the position."""


class InvalidAggregate(SecateurError):
    """A list of aggregates does not parse, or asks for one that is not answered here."""


class IncomparableLiteral(SecateurError):
    """A literal cannot be compared with the column beside it."""


class UnsupportedPredicate(SecateurError):
    """A predicate that only Spark can evaluate was to be evaluated over rows without Spark."""


class EvaluationError(SecateurError):
    """A predicate has no value on a row, as Spark raises an error there: an overflow, or a division by zero."""


class TooManyOpenFiles(SecateurError):
    """This process, or the machine, has as many files open as it may: nothing is said of what was to be opened."""


class AccessDenied(SecateurError):
    """A store refuses what this process has of credentials; the message says where credentials are looked for."""


class StalePlan(SecateurError):
    """A file of the plan has vanished or changed since the plan was made."""


class AuditFailed(SecateurError):
    """A block that was pruned holds a row that matches: the index, or the footer that it was made of, is wrong."""


class IndexMissing(SecateurError):
    """The table has no index where one is needed."""


class IndexNotWritable(SecateurError):
    """The index location cannot be written."""


class IndexConflict(SecateurError):
    """Another writer published an index snapshot first."""


class IndexFault(SecateurError):
    """An index file is missing, corrupt, or of a newer version.

    While planning it is caught at the stage boundary, where it keeps blocks; with ``strict=True`` it is raised.
    """


class JavaNotFound(SecateurError):
    """No Java that Spark can run on was found."""
