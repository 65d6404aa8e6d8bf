"""A key goes through every error path and is found nowhere afterwards."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from store.clock import SystemClock
from store.database import open_reader
from store.read.tasks import events
from store.runs import RunFolder
from store.tables import payload
from tests.corpus import write_corpus
from tests.processes import siftlog
from tests.refusing import serve

CLOCK = SystemClock()
JOB = "paper-investigation"
CANARY = "sk-canary-7f3a9c51e8"
LOGIN = f"user:{CANARY}"

DIRECT = ("--model=openai/x", "--base-url={url}", "--api-key-env=MY_KEY")
THROUGH_LITELLM = ("--model=nvidia_nim/x",)


def _holds_key(text: str | bytes) -> bool:
    return CANARY.encode() in (text if isinstance(text, bytes) else text.encode())


def _search(cwd: Path, done: subprocess.CompletedProcess[str]) -> list[bytes]:
    """Look for the key wherever the run went; the bodies that it stored."""
    looks = ("status r", "events r --json", "export r")
    said = [siftlog(*words.split(), cwd=cwd).stdout for words in looks]
    said += [done.stdout, done.stderr]
    assert not [text for text in said if _holds_key(text)]
    assert not [text for text in said if "Traceback" in text]
    folder = cwd / "runs" / "r"
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert not [path.name for path in files if _holds_key(path.read_bytes())]
    with open_reader(RunFolder(folder).log) as reader:
        bodies = [
            payload(reader, recorded.seq) or b""
            for recorded in events(reader, limit=100_000)
        ]
    assert not [body for body in bodies if _holds_key(body)]
    return bodies


def _run(
    cwd: Path, *words: str, papers: int = 1, **environment: str
) -> subprocess.CompletedProcess[str]:
    corpus = write_corpus(cwd / "corpus", papers)
    done = siftlog(
        *("run", JOB, *corpus, "--run-id=r", "--deadline-s=1", "--json", *words),
        cwd=cwd,
        check=False,
        env=environment,
    )
    # one that leaves its terminal may be over before it is seen to have left
    expected = {0, 1} if "--detach" in words else {1, 3, 5}
    assert done.returncode in expected, done.stderr
    return done


@pytest.mark.parametrize("words", [DIRECT, THROUGH_LITELLM], ids=["direct", "litellm"])
@pytest.mark.parametrize("statuses", [(401,), (500, 429, 400), (200,), (403, 307)])
def test_no_file_event_or_message_holds_the_key(
    words: tuple[str, ...], statuses: tuple[int, ...], tmp_path: Path
) -> None:
    _goes_wrong(words, statuses, tmp_path)


def test_an_endpoint_that_never_answered_is_told_without_the_key(
    tmp_path: Path,
) -> None:
    # so many failures in a row that it is only probed from then on
    done = _goes_wrong(DIRECT, (200,), tmp_path, papers=4)
    assert "cannot be read" in done.stderr


def _goes_wrong(
    words: tuple[str, ...], statuses: tuple[int, ...], tmp_path: Path, papers: int = 1
) -> subprocess.CompletedProcess[str]:
    with serve(*statuses) as url:
        (tmp_path / ".env").write_text(
            f"MY_KEY={CANARY}\nNVIDIA_NIM_API_KEY={CANARY}\nNVIDIA_NIM_API_BASE={url}\n"
        )
        told = (word.format(url=url) for word in words)
        done = _run(tmp_path, *told, papers=papers)
    bodies = _search(tmp_path, done)
    # what the endpoint echoed is there, with the key blotted out
    assert [body for body in bodies if b"Bearer ***" in body]
    return done


@pytest.mark.parametrize("words", [DIRECT, THROUGH_LITELLM], ids=["direct", "litellm"])
def test_a_key_that_comes_back_in_json_escapes_is_masked_where_it_is_decoded(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    with serve(500, 429, 400, escapes=True) as url:
        (tmp_path / ".env").write_text(
            f"MY_KEY={CANARY}\nNVIDIA_NIM_API_KEY={CANARY}\nNVIDIA_NIM_API_BASE={url}\n"
        )
        done = _run(tmp_path, *(word.format(url=url) for word in words))
    bodies = _search(tmp_path, done)
    decoded = [json.loads(body) for body in bodies if body.startswith(b'{"error"')]
    assert decoded
    for body in decoded:
        assert "Bearer ***" in body["error"]["message"]
        assert CANARY not in body["error"]["message"]


def test_what_a_detached_run_writes_down_holds_no_key(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "runs" / "r")
    with serve(500, 401) as url:
        words = [word.format(url=url) for word in DIRECT]
        done = _run(tmp_path, *words, "--detach", MY_KEY=CANARY)
        deadline = CLOCK.monotonic() + 30
        while folder.is_alive():
            assert CLOCK.monotonic() < deadline, "the run does not end"
            time.sleep(0.05)
    assert "refused the key" in folder.diagnostics.read_text()
    _search(tmp_path, done)


@pytest.mark.parametrize(
    "place", ["http://{login}@{host}", "http://{host}/v1?key={key}"]
)
def test_a_providers_address_with_a_password_is_not_repeated(
    place: str, tmp_path: Path
) -> None:
    with serve(401) as url:
        host = url.removeprefix("http://")
        address = place.format(login=LOGIN, host=host, key=CANARY)
        done = _run(
            tmp_path,
            "--model=nvidia_nim/x",
            NVIDIA_NIM_API_KEY="sk-another-0000000",
            NVIDIA_NIM_API_BASE=address,
        )
    _search(tmp_path, done)


@pytest.mark.parametrize(
    "words",
    [
        f"--base-url=http://{LOGIN}@host",
        f"--base-url=ftp://{LOGIN}@host",
        f"--base-url={LOGIN}@host",
        f"--base-url=http://{LOGIN}/more@host:x",
        f"--base-url=http://host/v1?key={CANARY}",
        f"--api-key-env={CANARY}",
    ],
)
def test_a_key_in_the_wrong_place_is_refused_unseen(words: str, tmp_path: Path) -> None:
    done = siftlog("run", JOB, "--model=openai/x", words, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert not _holds_key(done.stdout + done.stderr)
    assert len(done.stderr.splitlines()) == 2  # the first says that a sample is used
    assert not list(tmp_path.iterdir())


def test_a_key_in_a_configuration_file_is_refused_unseen(tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    for line in (f'api_key_env = "{CANARY}"', f'api_key = "{CANARY}"'):
        config.write_text(f"model = 'x'\n[models.x]\n{line}\n")
        done = siftlog("run", JOB, f"--config={config}", cwd=tmp_path, check=False)
        assert done.returncode == 2
        assert not _holds_key(done.stdout + done.stderr)
    assert [path.name for path in tmp_path.iterdir()] == ["c.toml"]
