"""Reads posts and their pools: all sentences of a post, and nothing else.

Pools come from a file of sentences, or, where none is named, from the posts' texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from jobs.evidence_retrieval.dataset import Post, Sentence
from jobs.evidence_retrieval.inputs.sentences import spans
from jobs.evidence_retrieval.settings import Settings
from jobs.inputs.files import read_csv, read_jsonl
from jobs.inputs.rows import InputFindings, InputRow
from runner.errors import DatasetError

POST_COLUMNS = ("post_id", "text")
SENTENCE_KEYS = ("post_id", "sid", "sent_uid", "text")
OFFSET_KEYS = ("start", "end")  #: written by `prepare sentences`, for people


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """All sentences that are known, by post; also of posts that are not read."""

    posts: Mapping[str, Post]
    places: Mapping[str, tuple[str, int]]  #: post and sid by uid
    are_read: bool  #: from a file of sentences, so that no other sentence exists


def read_posts(
    settings: Settings, noticed: InputFindings
) -> tuple[tuple[Post, ...], Pools]:
    """The posts to read in file order, and every pool.

    Raises:
        DatasetError: a row is off, a post or a sentence occurs twice, or there is none.
    """
    texts = read_texts(settings, noticed)
    if settings.sentences is None:
        posts = {
            post: Post(id=post, sentences=cut(post, texts[post])) for post in texts
        }
        chosen = tuple(posts.values())
    else:
        posts = _read_pools(settings.sentences, noticed)
        chosen = tuple(posts.values())
        if settings.posts is not None:
            chosen = tuple(posts.get(id_, Post(id=id_, sentences=())) for id_ in texts)
            _compare(settings.posts, texts, posts, noticed)
    named = settings.posts or settings.sentences
    if named and not chosen:
        raise DatasetError(f"{named.name}: no post in it (at least one is needed).")
    for post in chosen:
        if named and not post.sentences:
            noticed.add(
                "empty_pool",
                "warn",
                named.name,
                "Posts without a sentence are not asked about (see --empty-pool).",
                example=post.id,
            )
    pools = Pools(
        posts=posts,
        places={
            sentence.uid: (post.id, sentence.sid)
            for post in posts.values()
            for sentence in post.sentences
        },
        are_read=settings.sentences is not None,
    )
    return chosen, pools


def read_texts(settings: Settings, noticed: InputFindings) -> dict[str, str]:
    """The posts' texts by id, in file order; none where no file of posts is named.

    Raises:
        DatasetError: a row is off, or a post occurs twice.
    """
    if settings.posts is None:
        return {}
    texts: dict[str, str] = {}
    lines: dict[str, int] = {}
    rows = read_csv(
        settings.posts,
        POST_COLUMNS,
        noticed=noticed,
        allow_ragged=settings.allow_ragged,
    )
    for row in rows:
        post_id = row.text("post_id")
        _once(row, f"post {post_id}", lines, post_id)
        texts[post_id] = row.optional_text("text")
    return texts


def cut(post_id: str, text: str) -> tuple[Sentence, ...]:
    """The sentences of a text, with uids `<post_id>_<sid>`."""
    return tuple(
        Sentence(sid=sid, uid=f"{post_id}_{sid}", text=text[span.start : span.end])
        for sid, span in enumerate(spans(text))
    )


def _read_pools(path: Path, noticed: InputFindings) -> dict[str, Post]:
    pools: dict[str, dict[int, Sentence]] = {}
    uids: dict[str, int] = {}
    for row in read_jsonl(path, SENTENCE_KEYS, OFFSET_KEYS, noticed=noticed):
        uid, sid = row.text("sent_uid"), row.count("sid")
        _once(row, f"sent_uid {uid}", uids, uid)
        pool = pools.setdefault(row.text("post_id"), {})
        if sid in pool:
            raise row.error(
                f"sid {sid} is that of {pool[sid].uid} already (number a post's "
                "sentences from 0, each once)"
            )
        pool[sid] = Sentence(sid=sid, uid=uid, text=row.optional_text("text"))
    for post_id, pool in pools.items():
        if max(pool) >= len(pool):
            noticed.add(
                "sid_gap",
                "warn",
                path.name,
                "Sentence numbers of posts leave some out: is the pool whole?",
                example=post_id,
            )
    return {post_id: _in_order(post_id, pool) for post_id, pool in pools.items()}


def _in_order(post_id: str, pool: Mapping[int, Sentence]) -> Post:
    return Post(id=post_id, sentences=tuple(pool[sid] for sid in sorted(pool)))


def _once(row: InputRow, what: str, lines: dict[str, int], id_: str) -> None:
    """Refuse what a file has twice."""
    if id_ in lines:
        raise row.error(f"{what} stands on line {lines[id_]} already (remove one)")
    lines[id_] = row.line


def _compare(
    path: Path,
    texts: Mapping[str, str],
    posts: Mapping[str, Post],
    noticed: InputFindings,
) -> None:
    for post_id, post in posts.items():
        if post_id not in texts:
            noticed.add(
                "post_not_named",
                "info",
                path.name,
                "Sentences of posts that the file of posts does not name are left out.",
                example=post_id,
            )
        else:
            for uid in _altered(texts[post_id], post):
                noticed.add(
                    "sentence_not_in_post",
                    "warn",
                    path.name,
                    "Sentences do not occur in the text of their post as they stand.",
                    example=uid,
                )


def _altered(text: str, post: Post) -> Iterator[str]:
    return (sentence.uid for sentence in post.sentences if sentence.text not in text)
