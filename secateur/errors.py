"""Errors that callers see: each message says what is wrong, which value, and what to do."""

from __future__ import annotations


class SecateurError(Exception):
    """Base class of every error raised on purpose by this package."""


class TableNotFound(SecateurError):
    """No table was found at the path."""


class UnsupportedTable(SecateurError):
    """The directory is a table of a format whose live files cannot be derived from its Parquet files."""


class UnknownSnapshot(SecateurError):
    """The table has no such snapshot, branch or tag, or had none at that time."""


class MixedRewrite(SecateurError):
    """A file holds rows from before and from after a snapshot, because a compaction has put them together."""


class TableChanged(SecateurError):
    """Rows of a table that a stream reads were changed or removed, which a stream of new rows cannot express."""


class InvalidParquet(SecateurError):
    """A file is not Parquet, is truncated, or holds contradictory metadata."""


class OldCalendar(InvalidParquet):
    """A file has days or instants in the calendar of Spark 2, from a time for which only Spark converts them."""


class NotInFile(SecateurError):
    """A file lacks a column whose values come from its partition, and was opened without them."""


class IncompatibleSchemas(SecateurError):
    """Two files of one table give a column types that no widening reconciles."""


class UnknownColumn(SecateurError):
    """A predicate or a column list names a column that the table does not have."""


class InvalidOption(SecateurError, ValueError):
    """An option is unknown, cannot be satisfied or cannot be parsed."""


class UnknownBlock(SecateurError):
    """A file or row group was requested that the table does not have."""


class AmbiguousColumn(SecateurError):
    """A name matches several columns when case is ignored."""


class InvalidPredicate(SecateurError):
    """A predicate does not parse; the message carries the position."""


class InvalidAggregate(SecateurError):
    """A list of aggregates does not parse, or contains an unsupported one."""


class InvalidOrder(SecateurError):
    """A text to order by does not parse, or is not a list of columns."""


class IncomparableLiteral(SecateurError):
    """A literal cannot be compared with the column next to it."""


class UnsupportedPredicate(SecateurError):
    """A predicate that only Spark can evaluate was to be evaluated over rows without Spark."""


class EvaluationError(SecateurError):
    """A predicate has no value on a row because Spark raises an error there: an overflow, or a division by zero."""


class TooManyOpenFiles(SecateurError):
    """This process, or the machine, has too many files open: nothing is known about the file to be opened."""


class AccessDenied(SecateurError):
    """A store rejects the credentials of this process; the message says where credentials are looked for."""


class StoreUnreachable(SecateurError):
    """A store does not answer within the time for opening a table."""


class StalePlan(SecateurError):
    """A file of the plan vanished or changed after the plan was made."""


class AuditFailed(SecateurError):
    """A pruned block holds a matching row: the index, or the footer that it was built from, is wrong."""


class IndexMissing(SecateurError):
    """The table has no index, but one is needed."""


class IndexNotWritable(SecateurError):
    """The index location cannot be written."""


class IndexConflict(SecateurError):
    """Another writer published an index snapshot first."""


class IndexFault(SecateurError):
    """An index file is missing, corrupt, or of a newer version.

    While planning it is caught at the stage boundary, which keeps the blocks; with ``strict=True`` it is raised.
    """


class PackageMissing(SecateurError):
    """A package that the call needs is not installed here, or cannot be imported by the executors of Spark."""


class JavaNotFound(SecateurError):
    """No Java that can run Spark was found."""
