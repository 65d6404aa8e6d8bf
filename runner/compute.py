"""Computes a result for a program that must not load a job, such as the monitor.

What needs a job's code, such as a comparison or a partial scorecard, is computed by a
separate process:

    python -P -m runner.compute REQUEST

REQUEST is one JSON object. `command` is one of `COMMANDS`, `arguments` are its
command-line arguments; `--json` is among them:

    {"command": "score", "arguments": ["RUN", "--json", "--no-record", "--no-report"]}

The response is lines of JSON on stdout. Each line but the last is a record, as
`siftlog COMMAND --json` prints it. The last line ends the response:

    {"exit_code": 0, "error": ""}

`exit_code` is the command's. `error` is empty if the records are valid, which includes
exit codes that judge the run (3, 4 and 6); otherwise it is one sentence with the next
step, and the records are invalid. A response without that line is incomplete: the
process was killed or failed on import, and the last line of stderr may show why. The
process itself ends with 0 once the response is complete.

It runs at low priority, so that a run on the same machine is not disturbed. `-P` keeps
a folder called `runner` in the current directory from being imported.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from io import TextIOBase
from typing import Final

COMMANDS: Final = frozenset({"compare", "score"})
"""Commands that may be requested."""

_NICENESS: Final = 10
"""Increment of the niceness: half of the range, so the process still advances on a busy
machine."""
_OUTPUT_CHARS: Final = 16 * 2**10
"""Characters kept of a command's messages: the reason is at the end."""


class RequestError(ValueError):
    """The request is not in the documented form; the message is one sentence."""


def read_request(text: str) -> list[str]:
    """Return the command and its arguments.

    Raises:
        RequestError: the text is not a valid request.
    """
    try:
        request = json.loads(text)
    except ValueError as error:
        raise RequestError("the request is not JSON: see runner.compute") from error
    match request:
        case {"command": str(command), "arguments": [*arguments]} if (
            command in COMMANDS and all(isinstance(word, str) for word in arguments)
        ):
            return [command, *arguments]
    raise RequestError(
        f"the request needs a command ({', '.join(sorted(COMMANDS))}) and its "
        "arguments: install siftlog and its monitor in one version"
    )


def respond(command: Sequence[str]) -> None:
    """Run a command, and end the response that it printed."""
    # imported here: the priority is lowered before a library starts threads
    from runner.cli.console import (  # noqa: PLC0415
        BUDGET,
        CHECK_FAILED,
        DONE,
        FAILED_TASKS,
    )
    from runner.cli.main import exit_code  # noqa: PLC0415

    sentences = _Tail()
    with redirect_stderr(sentences):
        code = exit_code([*command])
    is_answered = code in {DONE, FAILED_TASKS, BUDGET, CHECK_FAILED}
    _end(code, "" if is_answered else _reason(command[0], code, sentences.text))


def main() -> None:
    """Entry point of the process."""
    os.nice(_NICENESS)
    try:
        command = read_request(" ".join(sys.argv[1:]))
    except RequestError as error:
        _end(2, str(error))
    else:
        respond(command)


class _Tail(TextIOBase):
    """Keeps the end of the text written to it."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        """Append text."""
        self.text = (self.text + text)[-_OUTPUT_CHARS:]
        return len(text)


def _reason(command: str, code: int, sentences: str) -> str:
    """Return the last sentence, without the program's name and the full stop."""
    if sentences := sentences.strip():
        last = sentences.rpartition("\n")[2]
        return last.removeprefix("siftlog: ").removesuffix(".")
    return f"siftlog {command} ended with code {code} and no output: run it yourself"


def _end(code: int, error: str) -> None:
    sys.stdout.write(json.dumps({"exit_code": code, "error": error}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
