"""The file of cached answers: what comes back, who may write, what may be wrong."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.cache import (
    CachedReply,
    CacheEntry,
    connect,
    find,
    groups,
    is_busy,
    prune,
    unusable,
    write,
)
from store.errors import CacheUnusable

DAY_US = 86_400_000_000


def _key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def _entry(
    number: int, *, body: bytes = b"{}", model: str = "m", at_us: int = 0
) -> CacheEntry:
    return CacheEntry(
        key=_key(number),
        model=model,
        endpoint="http://x/v1",
        run="r",
        created_us=at_us,
        reply=CachedReply(form="f", status=200, headers={"a": "ä"}, body=body),
    )


def _body(number: int) -> bytes:
    """Bytes that do not compress, so that sizes are what they seem."""
    chunk = number.to_bytes(4, "big")
    return b"".join(
        bytes(b * 167 % 251 ^ (i * 89) % 256 for b in chunk) for i in range(500)
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "caches" / "cache.db"


@given(body=st.binary(max_size=3000))
def test_a_reply_comes_back_as_it_was(body: bytes) -> None:
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - one an example

    with (
        TemporaryDirectory() as folder,
        closing(connect(Path(folder, "cache.db"))) as conn,
    ):
        entry = _entry(1, body=body * 3)
        write(conn, [entry], {}, 0)
        assert find(conn, [_key(2), _key(1)]) == {_key(1): entry.reply}


def test_the_later_of_two_answers_to_a_question_counts(path: Path) -> None:
    with closing(connect(path)) as conn:
        write(conn, [_entry(1, body=b"old"), _entry(1, body=b"new")], {}, 0)
        assert find(conn, [_key(1)])[_key(1)].body == b"new"
        write(conn, [_entry(1, body=b"newest", at_us=7)], {}, 0)
        assert find(conn, [_key(1)])[_key(1)].body == b"newest"
        (group,) = groups(conn)
        assert (group.entries, group.oldest_us) == (1, 7)


def test_nobody_else_may_read_it(path: Path) -> None:
    connect(path).close()
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["cache.db"]


WRITER = """
import sys
from contextlib import closing
from pathlib import Path
from tests.store.test_cache import _entry, connect, write
path, first = Path(sys.argv[1]), int(sys.argv[2])
with closing(connect(path)) as conn:
    for start in range(first, first + 400, 8):
        write(conn, [_entry(n, body=b"%d" % n) for n in range(start, start + 8)], {}, 0)
"""


def test_processes_that_make_and_fill_it_at_once_lose_nothing(path: Path) -> None:
    # two of them ask the same questions
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(first)])
        for first in (0, 400, 400, 800)
    ]
    assert [writer.wait(timeout=50) for writer in writers] == [0, 0, 0, 0]
    with closing(connect(path)) as conn:
        found = find(conn, map(_key, range(1200)))
    assert [found[_key(n)].body for n in range(1200)] == [
        b"%d" % n for n in range(1200)
    ]


def test_a_damaged_row_is_left_out_and_its_place_can_be_taken(path: Path) -> None:
    with closing(connect(path)) as conn:
        write(conn, [_entry(1, body=_body(1) * 2), _entry(2)], {}, 0)
        conn.execute("UPDATE entry SET body = x'00', enc = 2 WHERE key = ?", (_key(1),))
        conn.execute("UPDATE entry SET headers = x'ff' WHERE key = ?", (_key(2),))
        assert find(conn, [_key(1), _key(2)]) == {}
        write(conn, [_entry(1), _entry(2)], {}, 0)
        assert len(find(conn, [_key(1), _key(2)])) == 2


def test_what_is_wrong_with_the_file_is_said_in_a_sentence(tmp_path: Path) -> None:
    junk = tmp_path / "junk.db"
    junk.write_bytes(b"no database at all, but long enough to be looked at" * 100)
    with pytest.raises(CacheUnusable, match=r"junk.db is damaged.*delete it"):
        connect(junk)

    foreign = tmp_path / "foreign.db"
    with closing(sqlite3.connect(foreign)) as conn:
        conn.execute("CREATE TABLE mine(x)")
    with pytest.raises(CacheUnusable, match="another program's"):
        connect(foreign)

    newer = tmp_path / "newer.db"
    with closing(connect(newer)) as conn:
        conn.execute("PRAGMA user_version = 2")
    with pytest.raises(CacheUnusable, match="later siftlog"):
        connect(newer)

    with pytest.raises(CacheUnusable, match="cannot be used"):
        connect(junk / "cache.db")


def test_a_file_that_is_held_is_neither_damaged_nor_out_of_reach(path: Path) -> None:
    with closing(connect(path)) as holder, closing(connect(path)) as conn:
        holder.execute("BEGIN IMMEDIATE")
        conn.execute("PRAGMA busy_timeout = 1")
        with pytest.raises(sqlite3.OperationalError) as caught:
            write(conn, [_entry(1)], {}, 0)
        assert is_busy(caught.value)
        assert "being written by another process" in str(unusable(path, caught.value))


def test_a_full_disk_takes_nothing_and_loses_nothing(path: Path) -> None:
    with closing(connect(path)) as conn:
        write(conn, [_entry(1)], {}, 0)
        conn.execute("PRAGMA max_page_count = 1")
        with pytest.raises(sqlite3.OperationalError, match="full"):
            write(conn, [_entry(n, body=_body(n)) for n in range(2, 50)], {}, 0)
        assert len(find(conn, map(_key, range(50)))) == 1
        conn.execute("PRAGMA max_page_count = 100000")
        write(conn, [_entry(2)], {}, 0)
        assert len(find(conn, map(_key, range(50)))) == 2


def test_groups_tell_models_and_count_uses(path: Path) -> None:
    with closing(connect(path)) as conn:
        write(conn, [_entry(n, model="ab"[n % 2], at_us=n) for n in range(5)], {}, 0)
        write(conn, [], {_key(0): 2, _key(4): 1, _key(99): 1}, 50)
        first, second = groups(conn)
        assert (first.model, first.entries, first.hits) == ("a", 3, 3)
        assert (first.oldest_us, first.newest_us) == (0, 4)
        assert (second.model, second.entries, second.hits) == ("b", 2, 0)
        assert groups(conn, "b") == [second]


def test_what_was_not_used_for_long_is_removed_by_its_last_use(path: Path) -> None:
    with closing(connect(path)) as conn:
        write(conn, [_entry(n, model="ab"[n % 2]) for n in range(10)], {}, 0)
        write(conn, [], {_key(0): 1, _key(1): 1}, 30 * DAY_US)
        assert prune(conn, model="a", unused_since_us=DAY_US).entries == 4
        assert prune(conn, unused_since_us=DAY_US).entries == 4
        assert set(find(conn, map(_key, range(10)))) == {_key(0), _key(1)}
        assert prune(conn, model="b").entries == 1
        assert prune(conn).left_entries == 0


def test_it_shrinks_to_a_size_by_what_was_used_least_lately(path: Path) -> None:
    with closing(connect(path)) as conn:
        write(conn, [_entry(n, body=_body(n), at_us=n) for n in range(500)], {}, 0)
        write(conn, [], {_key(0): 1}, 1000)
        told = prune(conn, max_bytes=300_000, dry_run=True)
        assert prune(conn, max_bytes=10**9, dry_run=True).entries == 0
        assert len(find(conn, map(_key, range(500)))) == 500
        pruned = prune(conn, max_bytes=300_000)
        assert pruned == told
        assert pruned.left_entries + pruned.entries == 500
        left = set(find(conn, map(_key, range(500))))
        last = range(501 - pruned.left_entries, 500)
        assert left == {_key(0), *map(_key, last)}
    assert 200_000 < path.stat().st_size <= 300_000
