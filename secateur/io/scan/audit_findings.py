"""The findings of an audit: what was checked, and every statistic that the data contradicts."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from secateur.values.key import Key


@dataclass(frozen=True)
class AuditFault:
    """A statistic that the data contradicts, for a block or a whole file (then the row group is -1)."""

    file: str
    row_group: int
    column: str
    statistic: str
    recorded: str
    actual: str

    def __str__(self) -> str:
        block = self.file if self.row_group < 0 else f"{self.file}, row group {self.row_group}"
        of = f" of {self.column}" if self.column else ""
        return f"{block}: {self.statistic}{of} is recorded as {self.recorded}, and {self.actual} was found"


@dataclass
class AuditFindings:
    """The findings of tasks."""

    blocks: int = 0
    rows: int = 0
    values: int = 0
    faults: list[AuditFault] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    drawn: dict[int, list[Key]] = field(default_factory=dict)  # values by column number

    def to_bytes(self) -> bytes:
        """Encode as JSON, with bytes keys in hexadecimal."""
        drawn = {c: [key.hex() if isinstance(key, bytes) else key for key in keys] for c, keys in self.drawn.items()}
        return json.dumps({**asdict(self), "drawn": drawn}).encode()

    def add(self, data: bytes) -> None:
        """Add the findings of another process."""
        findings = json.loads(data)
        self.blocks += findings["blocks"]
        self.rows += findings["rows"]
        self.values += findings["values"]
        self.faults += [AuditFault(**fault) for fault in findings["faults"]]
        self.skipped += findings["skipped"]
        for c, keys in findings["drawn"].items():
            keys_of_column = self.drawn.setdefault(int(c), [])
            keys_of_column += [bytes.fromhex(key) if isinstance(key, str) else key for key in keys]
