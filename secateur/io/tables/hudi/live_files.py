"""Choose the live files of a Hudi table: the newest base file of every file group, by the timeline.

What the active timeline says is taken as complete: each file that it names has to be there, and each file that is there
has to be accounted for. Only files of commits that were archived are known by their names alone.

Source: Hudi's technical specification, "Reader expectations"; ``AbstractTableFileSystemView``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import flags, from_numpy, strings, truths
from secateur.errors import TableNotFound, UnknownSnapshot
from secateur.io.tables.hudi.commits import NO_INSTANT, Commit
from secateur.io.tables.hudi.found_files import UNTOLD, NamedFiles, base_files_among, log_files_among
from secateur.io.tables.hudi.timeline import Timeline


@dataclass(frozen=True)
class InstantView:
    """A table at an instant: the timeline, what its commits say, and the base files that were found."""

    timeline: Timeline
    commits: Sequence[Commit]  # all complete ones, oldest first
    base_files: NamedFiles
    instant: int
    rolled_back: Callable[[], np.ndarray]  # reads which instants were rolled back

    def live(self) -> NamedFiles:
        """Return the newest base file of every file group that is not replaced.

        Raises TableNotFound if a file that the timeline names is not there, or a file is of no known commit;
        UnknownSnapshot if files of an older instant have been cleaned.
        """
        self._require_known()
        self._require_unbroken()
        complete = self.timeline.is_complete(self.base_files.instant)
        counts = complete & _is_in(self.base_files.paths, self._written.files.paths)
        counts |= self.timeline.is_archived(self.base_files.instant)
        counts &= (self.base_files.instant <= self.instant) & ~_is_in(self.base_files.group, self._replaced)
        live = self._newest(self.base_files.take(counts))
        self._require_named(live)
        if self.instant < self.timeline.last:
            self._require_uncleaned(live)
        return live

    # ---- what commits say

    @cached_property
    def _past(self) -> list[Commit]:
        return [commit for commit in self.commits if commit.instant <= self.instant]

    @cached_property
    def _written(self) -> _Written:
        """The base files that commits up to the instant wrote."""
        return _written(self._past)

    @cached_property
    def _replaced(self) -> pa.Array:
        return pa.concat_arrays([strings([]), *(commit.replaced for commit in self._past)])

    # ---- checks

    def _require_known(self) -> None:
        """Raise TableNotFound for base files of a commit of which the timeline has nothing, though it should."""
        timeline, instants = self.timeline, self.base_files.instant
        known = timeline.is_known(instants)
        if not known.all():  # a task that was still running may have written after the rollback of its commit
            known |= np.isin(instants, self.rolled_back())
        if not known.all():
            at = int(np.flatnonzero(~known)[0])
            raise TableNotFound(
                f"{timeline.location}/{self.base_files.paths[at].as_py()} was written by the commit {instants[at]}, of "
                f"which {timeline.directory} has nothing, neither complete, under way nor rolled back: the timeline "
                "has a gap, or the file was left behind by a writer that failed; then remove it"
            )

    def _require_unbroken(self) -> None:
        """Raise TableNotFound if a base file replaces one of a commit that is missing in the timeline."""
        previous, timeline = self._written.previous, self.timeline
        broken = ~timeline.is_known(previous) & (previous != NO_INSTANT)
        if broken.any():
            at = int(np.flatnonzero(broken)[0])
            raise TableNotFound(
                f"{timeline.location}/{self._written.files.paths[at].as_py()} came in the place of a file of the "
                f"commit {previous[at]}, of which {timeline.directory} has nothing: the timeline has a gap"
            )

    def _newest(self, files: NamedFiles) -> NamedFiles:
        """Return the newest file of every file group. Raises TableNotFound if two have the same instant."""
        code = files.group.dictionary_encode().indices.to_numpy()
        order = np.lexsort((files.instant, code))
        last = np.ones(len(order), bool)
        last[:-1] = code[order][1:] != code[order][:-1]
        twice = ~last[:-1] & (files.instant[order][1:] == files.instant[order][:-1])
        if twice.any():
            at = order[np.flatnonzero(twice)[0]]
            raise TableNotFound(
                f"{self.timeline.location} has two base files like {files.paths[int(at)].as_py()}, of one file group "
                "and one commit: which of them counts is not known"
            )
        return files.take(np.sort(order[last]))

    def _require_named(self, live: NamedFiles) -> None:
        """Raise TableNotFound if the newest file of a group by the commits is not the newest that was found."""
        files = self._written.files
        files = files.take(~_is_in(files.group, self._replaced))
        newest = self._newest(files)
        missing = ~_is_in(newest.paths, live.paths)
        if missing.any():
            at = int(np.flatnonzero(missing)[0])
            raise TableNotFound(
                f"{self.timeline.location}/{newest.paths[at].as_py()} is gone, or not in a partition of the table: the "
                f"commit {newest.instant[at]} wrote it, and no later one replaced it"
            )

    def _require_uncleaned(self, live: NamedFiles) -> None:
        """Raise UnknownSnapshot if files of an older instant are gone, which later commits show to have been there."""
        later = [commit for commit in self.commits if commit.instant > self.instant]
        written = _written(later)
        # The first later file of a group tells which file it came in the place of.
        first = np.sort(np.unique(written.codes, return_index=True)[1])
        previous, groups = written.previous[first], written.files.group.take(from_numpy(first))
        lacking = (previous != NO_INSTANT) & (previous <= self.instant) & ~_is_in(groups, live.group)
        lacking &= ~_is_in(groups, self._replaced)
        # A group that a later commit replaced, and of which no commit tells, was there before all of them.
        replaced = pa.concat_arrays([strings([]), *(commit.replaced for commit in later)])
        known_groups = pa.concat_arrays([strings([]), *map(_all_groups, self.commits), live.group, self._replaced])
        gone = [
            *groups.filter(flags(lacking)).to_pylist(),
            *replaced.filter(_not_in(replaced, known_groups)).to_pylist(),
        ]
        if gone:
            raise UnknownSnapshot(
                f"{self.timeline.location} has no files of the instant {self.instant} any more, that of the file group "
                f"{gone[0]} for one: they have been cleaned"
            )


@dataclass(frozen=True)
class _Written:
    """The base files that some commits wrote, oldest first, and the instants of those in whose place they came."""

    files: NamedFiles
    previous: np.ndarray

    @property
    def codes(self) -> np.ndarray:
        """A number for the file group of each."""
        codes: np.ndarray = self.files.group.dictionary_encode().indices.to_numpy()
        return codes


def _written(commits: Sequence[Commit]) -> _Written:
    paths = pa.concat_arrays([strings([]), *(commit.paths for commit in commits)])
    previous = np.concatenate([np.zeros(0, np.int64), *(commit.previous for commit in commits)])
    files = base_files_among(paths)
    return _Written(files, previous[_is_in(paths, files.paths)])


def _all_groups(commit: Commit) -> pa.Array:
    return pa.concat_arrays([base_files_among(commit.paths).group, log_files_among(commit.paths).group])


# ---- log files -------------------------------------------------------------------------------------------------------


def groups_with_logs(view: InstantView, live: NamedFiles, logs: NamedFiles, *, log_names_base: bool) -> pa.Array:
    """Return the file groups with log files whose rows their base files may not have.

    Log files of commits that are not complete do not count where their names tell the commit. With `log_names_base`
    they tell the base file before them, so all that do not belong to an older base file count.
    """
    named = [log_files_among(commit.paths) for commit in view.commits if commit.instant <= view.instant]
    files = NamedFiles(
        pa.concat_arrays([logs.paths, *(part.paths for part in named)]),
        pa.concat_arrays([logs.group, *(part.group for part in named)]),
        np.concatenate([logs.instant, *(part.instant for part in named)]),
    )
    replaced = [commit.replaced for commit in view.commits if commit.instant <= view.instant]
    counts = ~_is_in(files.group, pa.concat_arrays([strings([]), *replaced]))
    if view.instant < view.timeline.last:
        counts &= (files.instant <= view.instant) | (files.instant == UNTOLD)
    if not log_names_base:
        counts &= ~view.timeline.is_pending(files.instant)
    at = pc.fill_null(pc.index_in(files.group, value_set=live.group), -1).to_numpy(zero_copy_only=False)
    base = np.append(live.instant, NO_INSTANT)[at]
    counts &= _seen_until(files.instant, view.timeline, log_names_base) >= base
    return files.group.filter(flags(counts)).unique()


def _seen_until(instants: np.ndarray, timeline: Timeline, log_names_base: bool) -> np.ndarray:
    """Return for log files the last instant of a base file that may not have their rows.

    A base file has the rows of log files whose commits were complete before its instant. When an archived commit was
    complete is not known.
    """
    if log_names_base:
        return instants
    done = [file.completed or UNTOLD for file in timeline.commits.values()]
    at = np.searchsorted(timeline.instants, instants)
    at[~timeline.is_complete(instants)] = len(done)
    return np.append(np.array(done, np.int64), UNTOLD)[at]


def _is_in(values: pa.Array, among: pa.Array) -> np.ndarray:
    return truths(pc.is_in(values, value_set=among))


def _not_in(values: pa.Array, among: pa.Array) -> pa.Array:
    return pc.invert(pc.is_in(values, value_set=among))
