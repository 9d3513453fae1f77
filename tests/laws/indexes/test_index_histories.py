"""Random histories of a table and its index, with crashes in between: the rows are right at every moment."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from unittest.mock import patch

import pyarrow.fs as pafs
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import secateur as sec
from secateur.errors import IndexConflict, IndexFault, IndexMissing, IndexNotWritable
from secateur.index.segments import base_file
from secateur.index.segments.snapshot_files import snapshot_numbers
from secateur.io.tables.directory.table import ParquetDirectory
from tests.support.profiles import examples, takes_seconds
from tests.support.stores.crash_lake import (
    QUESTIONS,
    ROWS,
    Lake,
    amend,
    answers,
    build,
    check_leftovers,
    drop,
    indexed,
    lake_on,
    matching,
    nothing,
    optimize,
    rebuild,
    refresh,
    rows_of,
    vacuum,
)
from tests.support.stores.faulty_store import DEATHS, FAULTS, DiedError, FaultyStore, Script

WRITERS = st.sampled_from([build, rebuild, refresh, amend, optimize, vacuum, drop])
MOST_STEPS = 60  # operations of a store that an action takes
SALTS = st.integers(0, 9)


def filesystem(tells_time: bool) -> pafs.FileSystem:
    """The local one, or one that tells no time of modification: pyarrow then gives 0 for all files."""
    return pafs.LocalFileSystem() if tells_time else pafs.PyFileSystem(pafs.FSSpecHandler(MemoryFileSystem()))


@examples(48, shrink=False)
@given(st.booleans(), st.booleans(), st.booleans(), SALTS)
def test_a_file_in_disguise_is_another_file(tells_time: bool, in_place: bool, is_indexed: bool, salt: int) -> None:
    """Of the same size and time: to the handle that read the one before, and to a new one."""
    with tempfile.TemporaryDirectory() as directory:
        lake = lake_on(filesystem(tells_time), f"{directory}/lake", indexed if is_indexed else nothing)
        handle = lake.open()
        for sql, holds in QUESTIONS:
            assert answers(handle, sql) == matching(lake, holds)
        for name in list(lake.rows):
            first = int(name.removesuffix(".parquet")) * ROWS
            assert lake.disguise(name, [rows_of(first, salt + more) for more in range(1, 40)], in_place=in_place)
        for table in (handle, lake.open()):
            for sql, holds in QUESTIONS:
                assert answers(table, sql) == matching(lake, holds)
        MemoryFileSystem.store.clear()


MOST_OWN = [0, 2, base_file.MOST_OWN]  # files of a snapshot that are in no base


class IndexHistory(RuleBasedStateMachine):
    """A table that changes, an index that is kept or not, and whoever keeps it dying now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.directory = tempfile.mkdtemp()
        self.stack.callback(shutil.rmtree, self.directory)
        self.files = 3

    def teardown(self) -> None:
        self.stack.close()

    @initialize(
        indexed=st.booleans(), tells_time=st.sampled_from([True, True, False]), most_own=st.sampled_from(MOST_OWN)
    )
    def begin(self, indexed: bool, tells_time: bool, most_own: int) -> None:
        self.stack.enter_context(patch.object(base_file, "MOST_OWN", most_own))
        self.lake: Lake = lake_on(filesystem(tells_time), f"{self.directory}/lake", nothing)
        self.stack.callback(MemoryFileSystem.store.clear)  # which all of them share
        self.handle = self.lake.open()
        if indexed:
            build(self.lake.open())

    @rule(salt=SALTS)
    def append(self, salt: int) -> None:
        self.lake.write(f"{self.files}.parquet", rows_of(self.files * ROWS, salt))
        self.files += 1

    @precondition(lambda self: len(self.lake.rows) > 1)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        self.lake.remove(data.draw(st.sampled_from(sorted(self.lake.rows))))

    @rule(data=st.data(), salt=SALTS)
    def overwrite(self, data: st.DataObject, salt: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.lake.rows)))
        self.lake.write(name, rows_of(int(name.removesuffix(".parquet")) * ROWS, salt))

    @rule(data=st.data(), salt=SALTS, in_place=st.booleans())
    def overwrite_in_disguise(self, data: st.DataObject, salt: int, in_place: bool) -> None:
        """By a file of the same size, whose time of modification is put back to that of the one before."""
        name = data.draw(st.sampled_from(sorted(self.lake.rows)))
        first = int(name.removesuffix(".parquet")) * ROWS
        self.lake.disguise(name, [rows_of(first, (salt + more) % 50) for more in range(50)], in_place=in_place)

    @rule(do=WRITERS)
    def keep(self, do: Callable[[ParquetDirectory], None]) -> None:
        """One that no fault befalls: it does what it says."""
        had = bool(snapshot_numbers(self.lake.store))
        try:
            do(self.lake.open())
        except IndexMissing:
            assert not had
            return
        if do in (build, rebuild, refresh, amend):
            assert sec.verify_index(self.lake.open()).files_uncovered == 0
        if do is vacuum:
            check_leftovers(self.lake)

    @rule(do=WRITERS, at=st.integers(0, MOST_STEPS), fault=st.sampled_from(FAULTS))
    def fail(self, do: Callable[[ParquetDirectory], None], at: int, fault: str) -> None:
        """One that dies, or is refused; where it has fewer steps nothing befalls it."""
        script = Script(at, fault)
        try:
            do(self.lake.open(FaultyStore(self.lake.filesystem, self.lake.store.root, script)))
        except (IndexMissing, IndexFault, IndexNotWritable, IndexConflict, KeyboardInterrupt):
            pass
        except DiedError:
            assert fault in DEATHS

    @invariant()
    def answers_are_exact(self) -> None:
        """Of a handle that was opened at the beginning, and of one opened now."""
        for table, (sql, holds) in zip((self.handle, self.lake.open()), QUESTIONS, strict=False):
            assert answers(table, sql) == matching(self.lake, holds)
        if snapshot_numbers(self.lake.store):
            assert sec.verify_index(self.lake.open()).faults == ()


TestIndexHistory = takes_seconds(IndexHistory.TestCase)
TestIndexHistory.settings = settings(examples(4, shrink=False), stateful_step_count=20)
