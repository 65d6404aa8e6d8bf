"""Shows the configuration of a run: job, models, inputs, settings, hashes.

Secrets are masked again here, although none should be stored: a hand-written
configuration may contain one.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from store.errors import StoreError
from store.events import RunStarted
from tui.render.format import count, money
from tui.run_screens import WatchedRun
from tui.screens.base import PageScreen

MASK = "***"
_SECRET_WORDS = frozenset(
    {
        "authorization",
        "bearer",
        "cookie",
        "credential",
        "credentials",
        "key",
        "keys",
        "passphrase",
        "password",
        "passwd",
        "secret",
        "secrets",
        "token",
    }
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SECRETS = re.compile(
    r"(?P<lead>\bbearer\s+|\bbasic\s+)[^\s\"']+"
    r"|(?P<user>://[^/\s:@]+:)[^\s\"'@]+(?=@)"
    r"|\b(?:sk|pk|hf|ghp|gho|xox[abp])[-_][A-Za-z0-9_-]{8,}",
    re.IGNORECASE,
)
"""Patterns of keys anywhere: in a header, in an address, or alone."""


def masked(value: Any, name: str = "") -> Any:  # noqa: ANN401 - as JSON and TOML have it
    """Mask values that are secrets by name or pattern.

    >>> masked({"api_key": "abc", "max_tokens": 9, "header": "Bearer xyz"})
    {'api_key': '***', 'max_tokens': 9, 'header': 'Bearer ***'}
    """
    if isinstance(value, Mapping):
        return {key: masked(nested, str(key)) for key, nested in value.items()}
    if isinstance(value, list | tuple):
        return [masked(nested, name) for nested in value]
    if not isinstance(value, str):
        return value
    words = {word.lower() for word in _WORDS.findall(name)}
    return MASK if value and words & _SECRET_WORDS else mask_secrets(value)


def mask_secrets(text: str) -> str:
    """Mask text that looks like a key."""
    return _SECRETS.sub(
        lambda match: f"{match['lead'] or match['user'] or ''}{MASK}", text
    )


def configured(
    began: RunStarted, planned: Mapping[str, int], config: Mapping[str, Any] | None
) -> str:
    """Describe the configuration of a run.

    Args:
        began: the first event of its log.
        planned: tasks planned so far, by stage.
        config: its `run.toml`; None: missing or unreadable.
    """
    facts = [
        ("job", f"{began.job} {began.job_version}"),
        ("code", f"sha256 {began.code_sha256}"),
        ("siftlog", began.siftlog_version),
        ("replicates", str(began.replicates)),
        ("budget", "no cap" if began.budget_usd is None else money(began.budget_usd)),
        *([("group", began.group)] if began.group is not None else []),
        ("imported", "yes" if began.imported else "no"),
    ]
    sections = {
        "": facts,
        "models by role": [(r, ", ".join(m)) for r, m in began.models.items()],
        "tasks planned by stage": [(s, count(n)) for s, n in planned.items()],
        "inputs, with their sha256": [
            (input_file.setting, f"{input_file.path}\n{input_file.sha256}")
            for input_file in began.inputs
        ],
        "settings of the job, as the run began": _flat(_settings(began.settings)),
        "run.toml, as the run was last started": _flat(
            config or {"run.toml": "none that can be read"}
        ),
    }
    return "\n".join(
        line for name, rows in sections.items() for line in _section(name, list(rows))
    )


def _settings(text: str) -> Mapping[str, Any]:
    read = json.loads(text)
    return read if isinstance(read, dict) else {"settings": read}


def _flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in masked(values).items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", json.dumps(value, ensure_ascii=False, default=str)


_COLUMNS = 74
"""Cells of a name and its value in 80 columns."""


def _section(name: str, rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    if name:
        yield ""
        yield name
    width = max((len(key) for key, _ in rows), default=0)
    for key, value in rows or [("", "none")]:
        first, *more = mask_secrets(value).split("\n")
        if max(map(len, (first, *more))) > _COLUMNS - width:
            # a hash stays in one piece, to be compared and copied
            yield f"  {key}"
            yield from (f"    {line}" for line in (first, *more))
            continue
        yield f"  {key:<{width}}  {first}"
        yield from (f"  {'':<{width}}  {line}" for line in more)


class ConfigScreen(PageScreen):
    """Shows the configuration; read once, as it does not change."""

    def __init__(self, watched: WatchedRun) -> None:
        self._source = watched.sources.config(watched.folder)
        super().__init__(
            "config",
            f"CONFIG {self._source.run_id} · secrets are masked",
            "Reading the log.",
            watched.glyphs,
        )

    def on_mount(self) -> None:
        """Read it in the background."""
        self.run_worker(self._read(), exit_on_error=False)

    async def _read(self) -> None:
        try:
            setup = await self._source.read()
        except (StoreError, sqlite3.Error) as error:
            self.show(f"{error}.\n\nBack with esc.")
        else:
            self.show(configured(setup.began, setup.planned, setup.config))

    def on_unmount(self) -> None:
        """Close the log."""
        self._source.close()
