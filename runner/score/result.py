"""The result of a scoring: what a run's end, status and the monitor show first.

It is a file in the folder of the scoring, so that it can be shown without its job.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
from msgspec import structs

from store.document import WIDTH, fitted_lines

RESULT: Final = "result.json"
"""The file in the folder of a scoring."""


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a run, for the first screen."""

    text: str  #: the headline metrics, and what the job shows with them
    findings: tuple[str, ...] = ()  #: its errors and warnings, errors first
    explain: str = ""  #: the item to explain first; empty: none
    #: paths of the headline metrics in `scorecard.json`, which does not rank them;
    #: empty: none, or an older siftlog wrote the file
    headlines: tuple[str, ...] = ()

    def json(self) -> bytes:
        """Encode the file; its text fits the page."""
        fitted = structs.replace(self, text="\n".join(fitted_lines(self.text, WIDTH)))
        return msgspec.json.format(msgspec.json.encode(fitted), indent=1) + b"\n"


def stored_result(folder: Path) -> RunResult | None:
    """Return the result in the folder of a scoring.

    None if an older siftlog wrote the folder, or if the file is damaged: the folder can
    be rebuilt from the log.
    """
    try:
        return msgspec.json.decode((folder / RESULT).read_bytes(), type=RunResult)
    except (OSError, msgspec.DecodeError):
        return None
