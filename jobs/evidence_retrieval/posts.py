"""Reads posts with their sentences, and gold labels of sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from jobs.evidence_retrieval.data import Criterion, Gold, PoolSentence, Post
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.inputs.cells import Count, Filled, InputCell, Label, Text
from jobs.kit.inputs.files import read_objects, read_table
from jobs.kit.inputs.rows import InputFindings, RowModel, Spelled
from runner.errors import DatasetError

ABBREVIATIONS = frozenset(
    (
        *("mr", "mrs", "ms", "dr", "prof", "st", "sr", "jr", "rev", "hon", "gen"),
        *("vs", "e.g", "i.e", "cf", "ca", "approx", "incl", "resp", "al", "viz"),
        *("fig", "figs", "eq", "ref", "refs", "sec", "vol", "ed", "eds", "pp"),
        *("dept", "est", "a.m", "p.m", "jan", "feb", "apr", "aug", "sept", "oct"),
        *("nov", "dec"),
    )
)
"""Abbreviations that rarely end a sentence; in lower case.

`no`, `etc`, `mar`, `jun` and `sat` are left out: just as often, they are words or end a
sentence.
"""

REACH = 16
"""Number of characters examined before a dot: longer than any abbreviation."""

_END = re.compile(r"[.!?]+[\"'”’»“‘]*(?=\s|\Z)|[\n\r\u2028\u2029]+")
_WORD = re.compile(r"[^\s\"'“”‘’«»()\[\]]*\Z")
_CAPITAL = re.compile(r"(?:.*\.)?[^\W\d_]\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceSpan:
    """Position of a sentence, `text[start:end]`, without surrounding white space."""

    start: int
    end: int


def spans(text: str) -> tuple[SentenceSpan, ...]:
    """Return the sentences of a text; the rest is white space.

    >>> text = "Dr. Ash slept 7.5 h. Well?"
    >>> [text[span.start : span.end] for span in spans(text)]
    ['Dr. Ash slept 7.5 h.', 'Well?']
    """
    joined: list[SentenceSpan] = []
    for span in _pieces(text):
        left = joined[-1] if joined else None
        if left and not (_has_letter(text, span) and _has_letter(text, left)):
            joined[-1] = SentenceSpan(start=left.start, end=span.end)
        else:
            joined.append(span)
    return tuple(joined)


def _pieces(text: str) -> Iterator[SentenceSpan]:
    start = 0
    for match in _END.finditer(text):
        before = text[max(start, match.start() - REACH) : match.start()]
        if match.group() == "." and _goes_on(before):
            continue
        yield from _trimmed(text, start, match.end())
        start = match.end()
    yield from _trimmed(text, start, len(text))


def _goes_on(before: str) -> bool:
    """Return whether a dot after *before* belongs to an abbreviation or an initial."""
    match = _WORD.search(before)
    word = match.group() if match else ""
    is_initial = bool(_CAPITAL.match(word)) and word[-1].isupper()
    return is_initial or word.lower() in ABBREVIATIONS


def _trimmed(text: str, start: int, end: int) -> Iterator[SentenceSpan]:
    piece = text[start:end]
    if piece.strip():
        left = start + len(piece) - len(piece.lstrip())
        yield SentenceSpan(start=left, end=start + len(piece.rstrip()))


def _has_letter(text: str, span: SentenceSpan) -> bool:
    return any(map(str.isalpha, text[span.start : span.end]))


class _PostRow(RowModel):
    post_id: Filled
    text: Text


class _SentenceRow(RowModel):
    post_id: Filled
    sid: Count
    sent_uid: Filled
    text: Text
    # written by `prepare sentences`, for people
    start: InputCell = None
    end: InputCell = None


class _GoldRow(RowModel):
    post_id: Filled
    sid: Count | None = None
    sent_uid: Text = ""
    criterion: Annotated[Filled, Spelled("criterion_id")]
    groundtruth: Label
    sentence: InputCell = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SentencePools:
    """All known sentences by post, including posts that are not read."""

    posts: Mapping[str, Post]
    locations: Mapping[str, tuple[str, int]]  #: post and sid by uid
    are_read: bool  #: from a file of sentences, so that there are no others


def read_posts(
    settings: EvidenceSettings, findings: InputFindings
) -> tuple[tuple[Post, ...], SentencePools]:
    """Read the posts in file order, and every pool.

    Raises:
        DatasetError: a row is invalid, a post or a sentence occurs twice, or there is
            none.
    """
    texts = read_texts(settings, findings)
    if settings.sentences is None:
        posts = {
            post: Post(id=post, sentences=cut(post, texts[post])) for post in texts
        }
        chosen = tuple(posts.values())
    else:
        posts = _read_pools(settings.sentences, findings)
        chosen = tuple(posts.values())
        if settings.posts is not None:
            chosen = tuple(posts.get(id_, Post(id=id_, sentences=())) for id_ in texts)
            _compare(settings.posts, texts, posts, findings)
    source = settings.posts or settings.sentences
    if source and not chosen:
        raise DatasetError(f"{source.name}: no post in it (at least one is needed).")
    for post in chosen:
        if source and not post.sentences:
            findings.add(
                "empty_pool",
                "warn",
                source.name,
                "Posts without sentences are skipped (see --empty-pool).",
                example=post.id,
            )
    pools = SentencePools(
        posts=posts,
        locations={
            sentence.uid: (post.id, sentence.sid)
            for post in posts.values()
            for sentence in post.sentences
        },
        are_read=settings.sentences is not None,
    )
    return chosen, pools


def read_texts(settings: EvidenceSettings, findings: InputFindings) -> dict[str, str]:
    """Read the posts' texts by id, in file order; empty without a file.

    Raises:
        DatasetError: a row is invalid, or a post occurs twice.
    """
    if settings.posts is None:
        return {}
    texts: dict[str, str] = {}
    lines: dict[str, int] = {}
    rows = read_table(
        settings.posts,
        _PostRow,
        findings=findings,
        allow_ragged=settings.allow_ragged,
    )
    for row in rows:
        _once(row, f"post {row.post_id}", lines, row.post_id)
        texts[row.post_id] = row.text
    return texts


def cut(post_id: str, text: str) -> tuple[PoolSentence, ...]:
    """Split a text into sentences, with uids `<post_id>_<sid>`."""
    return tuple(
        PoolSentence(sid=sid, uid=f"{post_id}_{sid}", text=text[span.start : span.end])
        for sid, span in enumerate(spans(text))
    )


def _read_pools(path: Path, findings: InputFindings) -> dict[str, Post]:
    pools: dict[str, dict[int, PoolSentence]] = {}
    uids: dict[str, int] = {}
    for row in read_objects(path, _SentenceRow, findings=findings):
        uid, sid = row.sent_uid, row.sid
        _once(row, f"sent_uid {uid}", uids, uid)
        pool = pools.setdefault(row.post_id, {})
        if sid in pool:
            raise row.error(
                f"sid {sid} is that of {pool[sid].uid} already (number a post's "
                "sentences from 0, each once)"
            )
        pool[sid] = PoolSentence(sid=sid, uid=uid, text=row.text)
    for post_id, pool in pools.items():
        if max(pool) >= len(pool):
            findings.add(
                "sid_gap",
                "warn",
                path.name,
                "Sentence numbers of posts leave some out: is the pool whole?",
                example=post_id,
            )
    return {
        post_id: Post(id=post_id, sentences=tuple(pool[sid] for sid in sorted(pool)))
        for post_id, pool in pools.items()
    }


def _once(row: RowModel, label: str, lines: dict[str, int], id_: str) -> None:
    """Refuse rows that occur twice in a file."""
    if id_ in lines:
        raise row.error(f"{label} occurs on line {lines[id_]} already (remove one)")
    lines[id_] = row.line


def _compare(
    path: Path,
    texts: Mapping[str, str],
    posts: Mapping[str, Post],
    findings: InputFindings,
) -> None:
    for post_id, post in posts.items():
        if post_id not in texts:
            findings.add(
                "post_not_named",
                "info",
                path.name,
                "Sentences of posts that the file of posts does not name are left out.",
                example=post_id,
            )
            continue
        for sentence in post.sentences:
            if sentence.text not in texts[post_id]:
                findings.add(
                    "sentence_not_in_post",
                    "warn",
                    path.name,
                    "Some sentences do not occur verbatim in the text of their post.",
                    example=sentence.uid,
                )


@dataclass(slots=True, kw_only=True)
class _Read:
    """Rows of a file read so far."""

    positive: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    criteria: dict[str, set[str]] = field(default_factory=dict)  #: of judged posts
    lines: dict[tuple[str, str, str], int] = field(default_factory=dict)
    writes_negatives: bool = False

    @property
    def all_criteria(self) -> set[str]:
        return {criterion for judged in self.criteria.values() for criterion in judged}

    def add(self, row: _GoldRow, uid: str) -> None:
        post, criterion = row.post_id, row.criterion
        key = (post, criterion, uid)
        if key in self.lines:
            raise row.error(
                f"{uid or 'a row without a sentence'} is judged for {criterion} on "
                f"line {self.lines[key]} already (remove one)"
            )
        self.lines[key] = row.line
        self.criteria.setdefault(post, set()).add(criterion)
        if row.groundtruth:
            self.positive.setdefault((post, criterion), set()).update({uid} - {""})
        else:
            self.writes_negatives = True


def read_gold(
    settings: EvidenceSettings,
    posts: tuple[Post, ...],
    criteria: tuple[Criterion, ...],
    pools: SentencePools,
    findings: InputFindings,
) -> Gold | None:
    """Read the gold of the posts that are read; None without a file.

    A query has evidence if a row says so, even if that row names no sentence. If no
    posts or no criteria are named, those of the file are used.

    Raises:
        DatasetError: a row is invalid or occurs twice, or names a sentence that is not
            one of its post.
    """
    if settings.gold is None:
        return None
    read = _Read()
    rows = read_table(
        settings.gold,
        _GoldRow,
        findings=findings,
        allow_ragged=settings.allow_ragged,
    )
    for row in rows:
        uid = _sentence(row, pools, findings)
        read.add(row, uid)
    posts_by_id = {post.id: post for post in posts} or {
        post_id: Post(id=post_id, sentences=()) for post_id in read.criteria
    }
    criterion_ids = {criterion.id for criterion in criteria} or read.all_criteria
    _notice(settings.gold.name, read, posts_by_id, criterion_ids, findings)
    return Gold(
        posts=frozenset(read.criteria.keys() & posts_by_id.keys()),
        evidence={
            (post, criterion): _in_pool_order(posts_by_id[post], uids)
            for (post, criterion), uids in sorted(read.positive.items())
            if post in posts_by_id and criterion in criterion_ids
        },
    )


def owner_by_prefix(uid: str) -> str:
    """Return the post in a uid `<post_id>_<sid>`; an id may contain underscores.

    >>> owner_by_prefix("post_1_2")
    'post_1'
    """
    return uid.rpartition("_")[0]


def _sentence(row: _GoldRow, pools: SentencePools, findings: InputFindings) -> str:
    """Return the uid that a row judges, or "" if it names no sentence."""
    post_id, sid, uid = row.post_id, row.sid, row.sent_uid
    pool = pools.posts.get(post_id)
    if not uid:
        if sid is None:
            return ""
        by_sid = {s.sid: s.uid for s in pool.sentences} if pool else {}
        uid = by_sid.get(sid, f"{post_id}_{sid}")
    owner, stored_sid = pools.locations.get(uid, (None, None))
    if owner is None and pools.are_read:
        raise row.error(
            f"{uid} is not among the sentences (correct it, or add it there)"
        )
    if (owner or owner_by_prefix(uid)) != post_id:
        raise row.error(
            f"{uid} is not a sentence of {post_id} (correct one of them; uids of "
            "another form than <post_id>_<sid> need --sentences)"
        )
    if owner is None and pool:
        findings.add(
            "gold_not_in_pool",
            "warn",
            row.source.file,
            "Gold sentences are not in their post's pool, so no list can hold them.",
            example=uid,
        )
    if owner is not None and sid is not None and sid != stored_sid:
        findings.add(
            "gold_sid_differs",
            "warn",
            row.source.file,
            "Rows give a sid that is not that of their sent_uid, which is believed.",
            example=row.place,
        )
    return uid


def _in_pool_order(post: Post, uids: set[str]) -> tuple[str, ...]:
    """Sort uids by position in the post; those outside its pool come last."""
    inside = tuple(s.uid for s in post.sentences if s.uid in uids)
    return (*inside, *sorted(uids.difference(inside)))


def _notice(
    file: str,
    read: _Read,
    posts: Mapping[str, Post],
    criteria: set[str],
    findings: InputFindings,
) -> None:
    cases = (
        (
            "positive_without_ids",
            "Queries with evidence name no sentence, so no list can hold any.",
            [f"{post}/{c}" for (post, c), uids in read.positive.items() if not uids],
        ),
        (
            "gold_of_unknown_post",
            "Posts of the gold are not among the posts; their rows are left out.",
            [post for post in read.criteria if post not in posts],
        ),
        (
            "gold_of_unknown_criterion",
            "Criteria of the gold are not among the criteria; their rows are left out.",
            sorted(read.all_criteria - criteria),
        ),
        (
            "incomplete_posts",
            "Posts are judged for some criteria only; the others count as negative.",
            [
                post
                for post, judged in read.criteria.items()
                if read.writes_negatives and post in posts and not criteria <= judged
            ],
        ),
        (
            "unjudged_posts",
            "Posts do not occur in the gold: predicted, and left out of all metrics.",
            [post for post in posts if post not in read.criteria],
        ),
    )
    for code, message, examples in cases:
        if examples:
            findings.add(
                code, "warn", file, message, example=examples[0], n=len(examples)
            )
