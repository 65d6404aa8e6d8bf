"""What reading the inputs brings to light, gathered into findings.

One finding per code and file, with a count and the first example, so that a file with
a hundred thousand odd rows says so in one line.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from runner.scorecard import Finding


class Noticed:
    """Collects findings while files are read; the order is that of first sight."""

    def __init__(self) -> None:
        self._findings: dict[tuple[str, str], Finding] = {}

    def add(
        self,
        code: str,
        severity: Literal["error", "warn", "info"],
        where: str,
        message: str,
        *,
        example: str = "",
        n: int = 1,
    ) -> None:
        """Note one more case of *code* in *where*; the first one's words stand."""
        seen = self._findings.get((code, where))
        self._findings[code, where] = (
            replace(seen, n=seen.n + n)
            if seen
            else Finding(
                code=code,
                severity=severity,
                where=where,
                message=message,
                n=n,
                example=example,
            )
        )

    def findings(self) -> tuple[Finding, ...]:
        """All that was noticed."""
        return tuple(self._findings.values())
