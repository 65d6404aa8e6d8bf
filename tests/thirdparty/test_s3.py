"""`--ship s3://` against moto's S3 server through s3fs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.processes import siftlog, simulated
from tests.thirdparty.servers import fetch, free_port, require, served

require("moto", "s3fs")

ROOT = Path(__file__).parent.parent.parent
DEAD = """
import time
from store.errors import StoreError
from store.segments.place import Place
place = Place.of("s3://bucket/big")
began = time.perf_counter()
try:
    place.put_new("x", b"x")
except StoreError as error:
    print(error)
print(time.perf_counter() - began)
"""
SECRETS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
}


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The variables that lead to a server with one bucket, named bucket."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", port]
    with served(words, cwd=tmp_path_factory.mktemp("moto"), url=url) as server:
        env = {**SECRETS, "AWS_ENDPOINT_URL": server.url}
        assert _bucket(server.url, "bucket", "PUT") == 200
        yield env


def _bucket(url: str, name: str, method: str) -> int:
    import urllib.error  # noqa: PLC0415 - beside its only use
    import urllib.request  # noqa: PLC0415

    asked = urllib.request.Request(f"{url}/{name}", method=method)  # noqa: S310
    try:
        with urllib.request.urlopen(asked) as reply:  # noqa: S310 - loopback
            return int(reply.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def _run(url: str, shard: str, place: str) -> list[object]:
    return [
        *("run", "paper-investigation", "--model", "openai/m", "--limit", 2),
        *("--base-url", url, "--shard", shard, "--run-id", "r", "--no-score"),
        *("--ship", place),
    ]


def test_a_shard_whose_disk_is_lost_is_merged_from_its_segments(
    s3: dict[str, str], tmp_path: Path
) -> None:
    place = "s3://bucket/big"
    with simulated(
        "--job", "paper-investigation", "--latency-ms", "1", cwd=tmp_path
    ) as url:
        for shard in ("0/2", "1/2"):
            siftlog(*_run(url, shard, place), cwd=tmp_path, env=s3)
    before = _status(tmp_path, s3)
    shutil.rmtree(tmp_path / "runs")
    siftlog("merge", "r", "--ship", place, cwd=tmp_path, env=s3)
    after = _status(tmp_path, s3)
    assert before["attempts"]["answered"] > 0
    for name in ("tasks", "attempts", "tokens_in", "tokens_out", "tokens_cached"):
        assert after[name] == before[name]
    siftlog("verify", "r", cwd=tmp_path, env=s3)


def _status(cwd: Path, env: dict[str, str]) -> dict[str, Any]:
    done = siftlog("status", "r", "--json", cwd=cwd, env=env)
    shown: dict[str, Any] = json.loads(done.stdout)
    return shown


def test_a_mistyped_bucket_is_not_made(s3: dict[str, str], tmp_path: Path) -> None:
    with simulated(
        "--job", "paper-investigation", "--latency-ms", "1", cwd=tmp_path
    ) as url:
        words = _run(url, "0/1", "s3://bukcet/big")
        done = siftlog(*words, cwd=tmp_path, env=s3, check=False)
    assert done.returncode != 0
    assert "s3://bukcet/big" in done.stderr
    assert _bucket(s3["AWS_ENDPOINT_URL"], "bukcet", "HEAD") == 404
    assert fetch(s3["AWS_ENDPOINT_URL"])[0] == 200


def test_an_endpoint_that_is_dead_is_told_of_within_seconds() -> None:
    env = {**SECRETS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}"}
    # measured in the process, for to start one on a busy machine takes seconds too
    done = subprocess.run(
        [sys.executable, "-c", DEAD],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    said, seconds = done.stdout.splitlines()
    assert "s3://bucket/big cannot be used" in said
    assert float(seconds) < 8  # it was 24.6 s
