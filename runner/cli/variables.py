"""Variables of the environment that set nothing: a misspelt one would be silent."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator

from runner.cli.choices import environment, variables
from runner.cli.speech import tell
from runner.job import Job
from runner.leasing.wire import VARIABLE
from runner.settings import ENVIRONMENT

PREFIX = "SIFTLOG_"

DEVELOPERS = frozenset({"SIFTLOG_REALDATA", "SIFTLOG_PROVE"})
"""What the project's own tests read."""


def say_idle(job: Job) -> None:
    """Name on stderr each `SIFTLOG_` variable that has no effect on a run of *job*."""
    for sentence in _sentences(job):
        tell(sentence)


def _sentences(job: Job) -> Iterator[str]:
    settings = {ENVIRONMENT + name.upper() for name in job.Settings.model_fields}
    known = variables() | settings | DEVELOPERS | {VARIABLE}
    for name in sorted(environment()):
        if not name.startswith(PREFIX):
            continue
        if name not in known:
            near = difflib.get_close_matches(
                name, sorted(known - DEVELOPERS - {VARIABLE}), n=1
            )
            hint = f"did you mean {near[0]}?" if near else "see siftlog run --help."
            yield f"warn: {name} in the environment sets nothing; {hint}"
        elif name not in os.environ:
            yield f"warn: {name} in .env sets nothing: that file holds keys only."
