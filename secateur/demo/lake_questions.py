"""The questions of the lake demo: plain SQL over the views `events` and `accounts`."""

from __future__ import annotations

from dataclasses import dataclass

from secateur.demo.events import BEST, EPOCH, MINUTE, MULTIPLIER, RARE, ROWS_OF_FILE, USERS


@dataclass(frozen=True)
class Question:
    """A query, its name, and the reason why it prunes or does not."""

    name: str
    sql: str
    why: str


def lake_questions(files: int) -> tuple[Question, ...]:
    """Return the questions for a table of so many files. Each finds rows."""
    user = files // 3 * ROWS_OF_FILE * MULTIPLIER % USERS
    other = (files // 2 * ROWS_OF_FILE + 77) * MULTIPLIER % USERS
    minute = _minute(files // 2)
    seconds = f"ts >= {_timestamp(files // 4 * MINUTE)} AND ts < {_timestamp(files // 4 * MINUTE + 5_000_000)}"
    return (
        Question(
            "a needle",
            f"SELECT * FROM events WHERE user_id = {user}",
            "A user's events are anywhere, so bounds do not help. Bloom filters tell which row groups may hold them.",
        ),
        Question(
            "a top ten",
            "SELECT ts, user_id, amount FROM events ORDER BY ts DESC, event_id LIMIT 10",
            "The times of every row group are known, so only those are read that can hold one of the ten newest.",
        ),
        Question(
            "a text search",
            f"SELECT ts, message FROM events WHERE message LIKE '%: {RARE}%'",
            "An index of words tells which row groups may hold 'deadlock', anywhere in a message.",
        ),
        Question(
            "a join",
            "SELECT a.user_id, count(*) AS events, round(sum(amount), 2) AS amount FROM events e "
            f"JOIN accounts a ON e.user_id = a.user_id WHERE a.tier = '{BEST}' GROUP BY a.user_id",
            "Spark finds the keys of the small side first, and the index is asked for row groups with these keys.",
        ),
        Question(
            "an OR",
            f"SELECT ts, user_id, level FROM events WHERE user_id = {other} OR ({seconds})",
            "A bloom filter answers one side, zone maps the other.",
        ),
        Question(
            "a function",
            f"SELECT level, count(*) AS events FROM events WHERE date_trunc('MINUTE', ts) = {minute} GROUP BY level",
            "The condition on the minute becomes one on the time, which zone maps answer.",
        ),
        Question(
            "a share of everything",
            "SELECT count(*) AS events, round(sum(amount), 2) AS amount FROM events WHERE level = 'WARN'",
            "Every row group holds such rows: nothing can be left out, with or without an index.",
        ),
    )


def _minute(number: int) -> str:
    return _timestamp(number * MINUTE)


def _timestamp(after: int) -> str:
    """Return the SQL of a time, in microseconds since the first event's day began."""
    from datetime import UTC, datetime, timedelta

    moment = datetime.fromtimestamp(EPOCH / 1e6, UTC) + timedelta(microseconds=after)
    return f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S}'"
