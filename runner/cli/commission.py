"""A subcommand of prepare that asks models: a run like any other, under another name.

`siftlog prepare JOB WHAT FILE --out DIR` is `siftlog run JOB --WHAT FILE --output-dir
DIR`, with every option of `run`: recorded, resumable, estimated and scored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runner.cli.run import run
from runner.cli.words import split_words
from runner.errors import UsageError
from runner.job import Job
from runner.settings import file_lists, switches


def commissioned(
    job: Job,
    what: str,
    words: Sequence[str],
    given: Mapping[str, Any],
    *,
    out: Path | None,
    as_json: bool,
) -> int:
    """Run *job* for the data that it makes; the exit code.

    Args:
        job: whose subcommand.
        what: it, and the setting that names the file.
        words: all that `prepare` has not read itself: the subcommand, its file, options
            of `run`, settings.
        given: what it has read, by name.
        out: where the data are copied to.
        as_json: whether JSON lines are printed.

    Raises:
        UsageError: file or folder is not named.
    """
    named = f"{job.name} {what}"
    if out is None:
        raise UsageError(f"{named} builds files; say in which folder with --out.")
    typed = [job.name, *_without(words, what), "--output-dir", str(out)]
    typed += [f"--set={each}" for each in given["sets"]]
    typed += [f"--config={given['config']}"] if given["config"] else []
    typed += ["--json"] if as_json else []
    # as `run` reads its words: what it takes for options of its own is not a file
    context = run.make_context("run", typed)
    files, flags = split_words(context.args, switches(job), file_lists(job))
    if len(files) != 1:
        raise UsageError(f"{named} reads one file; it was given {len(files)}.")
    context.args = [*flags, f"--{what.replace('_', '-')}", *files]
    code: int = run.invoke(context)
    return code


def _without(words: Sequence[str], what: str) -> list[str]:
    """The words without the subcommand, which comes first of the plain ones."""
    rest = list(words)
    rest.remove(what)
    return rest
