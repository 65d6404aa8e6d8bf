"""The process of a shard, on the machine on which it runs.

It is tied to whoever started it by a pipe (`runner.placing.tether`), so that none is
left behind that nobody knows of.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

from runner.placing.engine import How
from runner.placing.spec import ShardSpec

OPTION: Final = "SIFTLOG_"
"""Variables that set an option begin so; a shard's options stand in its `config`."""

TAIL_BYTES: Final = 4096
"""In which the last line of the diagnostics lies; sentences are shorter."""


class ShardProcess:
    """A shard at work on this machine."""

    def __init__(
        self, spec: ShardSpec, passed_on: Mapping[str, str], *, orphaned: signal.Signals
    ) -> None:
        """Start it, in a session of its own: no terminal's Ctrl-C reaches it.

        Args:
            spec: the shard.
            passed_on: values of the variables that `spec.environment` names.
            orphaned: what it is sent when the present process is no more.

        Raises:
            OSError: its folder cannot be written, or is not known here.
        """
        self._spec = spec
        spec.folder.mkdir(parents=True, exist_ok=True)
        spec.configuration.write_text(spec.config, "utf-8")
        own = spec.own_runs_dir
        kept = {k: v for k, v in os.environ.items() if not k.startswith(OPTION)}
        with spec.diagnostics.open("ab") as diagnostics:
            self._process = subprocess.Popen(  # noqa: S603 - the project's own command
                [
                    *(sys.executable, "-m", "runner.placing.tether", orphaned.name),
                    *spec.words,
                    *([] if own is None else [f"--local-dir={own}"]),
                    f"--config={spec.configuration}",
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=diagnostics,
                env={**kept, **passed_on},
                start_new_session=True,
            )

    def wait(self) -> tuple[How, int, str]:
        """Wait for its end: in which way, the code, and the last line it said."""
        code = self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        how = How.FINISHED if code >= 0 else How.DIED
        return how, code, self._last_line()

    def drain(self) -> None:
        """Ask it to finish its calls in flight and to end."""
        self._process.terminate()

    def kill(self) -> None:
        """End it at once, even while it is stopped."""
        self._process.kill()

    def _last_line(self) -> str:
        with self._spec.diagnostics.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")
