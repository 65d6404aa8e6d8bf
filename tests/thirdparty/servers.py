"""Servers that nobody here wrote: started as processes on loopback, ended by pid."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


def require(*modules: str, in_ci: bool = False) -> None:
    """Skip the module's tests where a package is absent; with *in_ci* CI fails."""
    absent = [name for name in modules if importlib.util.find_spec(name) is None]
    if absent:
        why = f"not installed: {', '.join(absent)}; pip install -e '.[thirdparty]'"
        if in_ci and os.environ.get("CI"):
            pytest.fail(why, pytrace=False)
        pytest.skip(why, allow_module_level=True)


def free_port() -> int:
    """A port of loopback that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def fetch(url: str, body: object = None, *, timeout: float = 20) -> tuple[int, bytes]:
    """Status and body of one request; a body is posted as JSON."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", "authorization": "Bearer none"}
    request = urllib.request.Request(url, data, headers)  # noqa: S310 - loopback
    try:
        with urllib.request.urlopen(request, timeout=timeout) as reply:  # noqa: S310
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def fetch_json(url: str, body: object = None) -> Any:
    """The JSON that a URL answers with."""
    return json.loads(fetch(url, body)[1])


@dataclass(kw_only=True)
class Server:
    """A process that listens."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path  #: its output

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait()


@contextmanager
def served(
    words: Sequence[object],
    *,
    cwd: Path,
    url: str,
    ready: str = "/",
    env: Mapping[str, str] | None = None,
    timeout_s: float = 90,
) -> Iterator[Server]:
    """A server under *url* from when it answers at *ready*, with whatever status."""
    log = cwd / f"{url.rpartition(':')[2]}.server.txt"
    with log.open("ab") as out:
        process = subprocess.Popen(
            [str(word) for word in words],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
        )
    try:
        ends_at = time.perf_counter() + timeout_s
        while not _answers(url + ready):
            said = log.read_text("utf-8", errors="replace")[-2000:]
            assert process.poll() is None, f"it has ended: {said}"
            assert time.perf_counter() < ends_at, f"it never answers: {said}"
            time.sleep(0.05)
        yield Server(url=url, process=process, log=log)
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(url: str) -> bool:
    try:
        status, _ = fetch(url, timeout=2)
    except OSError:
        return False
    return status != 503
