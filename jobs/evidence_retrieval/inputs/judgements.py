"""Reads the gold: which sentences people took as evidence for which criterion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jobs.evidence_retrieval.dataset import Criterion, Gold, Post
from jobs.evidence_retrieval.inputs.posts import Pools
from jobs.evidence_retrieval.settings import Settings
from jobs.inputs.files import read_csv
from jobs.inputs.rows import InputFindings, InputRow

NEEDED = ("post_id", "criterion", "groundtruth")
OPTIONAL = ("sid", "sent_uid", "sentence")
ALIASES = {"criterion_id": "criterion"}


@dataclass(slots=True, kw_only=True)
class _Read:
    """What a file said so far."""

    positive: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    criteria: dict[str, set[str]] = field(default_factory=dict)  #: of judged posts
    lines: dict[tuple[str, str, str], int] = field(default_factory=dict)
    writes_negatives: bool = False

    @property
    def all_criteria(self) -> set[str]:
        return {criterion for judged in self.criteria.values() for criterion in judged}

    def add(self, row: InputRow, uid: str) -> None:
        post, criterion = row.text("post_id"), row.text("criterion")
        place = (post, criterion, uid)
        if place in self.lines:
            raise row.error(
                f"{uid or 'a row without a sentence'} is judged for {criterion} on "
                f"line {self.lines[place]} already (remove one)"
            )
        self.lines[place] = row.line
        self.criteria.setdefault(post, set()).add(criterion)
        if row.label("groundtruth"):
            self.positive.setdefault((post, criterion), set()).update({uid} - {""})
        else:
            self.writes_negatives = True


def read_gold(
    settings: Settings,
    posts: tuple[Post, ...],
    criteria: tuple[Criterion, ...],
    pools: Pools,
    noticed: InputFindings,
) -> Gold | None:
    """The gold of the posts that are read; None where no file is named.

    A query has evidence where a row says so, even if that row names no sentence. Where
    no posts or no criteria are named, those of the file are taken.

    Raises:
        DatasetError: a row is off or occurs twice, or names a sentence that is not one
            of its post.
    """
    if settings.gold is None:
        return None
    read = _Read()
    rows = read_csv(
        settings.gold,
        NEEDED,
        OPTIONAL,
        noticed=noticed,
        allow_ragged=settings.allow_ragged,
        aliases=ALIASES,
    )
    for row in rows:
        uid = _sentence(row, pools, noticed)
        read.add(row, uid)
    known = {post.id: post for post in posts} or {
        post_id: Post(id=post_id, sentences=()) for post_id in read.criteria
    }
    wanted = {criterion.id for criterion in criteria} or read.all_criteria
    _notice(settings.gold.name, read, known, wanted, noticed)
    return Gold(
        posts=frozenset(read.criteria.keys() & known.keys()),
        evidence={
            (post, criterion): _in_pool_order(known[post], uids)
            for (post, criterion), uids in sorted(read.positive.items())
            if post in known and criterion in wanted
        },
    )


def owner_by_prefix(uid: str) -> str:
    """The post that a uid `<post_id>_<sid>` names; an id may hold underscores itself.

    >>> owner_by_prefix("post_1_2")
    'post_1'
    """
    return uid.rpartition("_")[0]


def _sentence(row: InputRow, pools: Pools, noticed: InputFindings) -> str:
    """The uid that a row judges, "" where it names no sentence."""
    post_id = row.text("post_id")
    pool = pools.posts.get(post_id)
    sid = row.count("sid") if row.has("sid") else None
    uid = row.optional_text("sent_uid")
    if not uid:
        if sid is None:
            return ""
        by_sid = {s.sid: s.uid for s in pool.sentences} if pool else {}
        uid = by_sid.get(sid, f"{post_id}_{sid}")
    owner, place = pools.places.get(uid, (None, None))
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
        noticed.add(
            "gold_not_in_pool",
            "warn",
            row.file,
            "Gold sentences are not in their post's pool, so no list can hold them.",
            example=uid,
        )
    if owner is not None and sid is not None and sid != place:
        noticed.add(
            "gold_sid_differs",
            "warn",
            row.file,
            "Rows give a sid that is not that of their sent_uid, which is believed.",
            example=f"line {row.line}",
        )
    return uid


def _in_pool_order(post: Post, uids: set[str]) -> tuple[str, ...]:
    """Uids by their place in the post; those that are not in its pool come last."""
    inside = tuple(s.uid for s in post.sentences if s.uid in uids)
    return (*inside, *sorted(uids.difference(inside)))


def _notice(
    file: str,
    read: _Read,
    posts: Mapping[str, Post],
    criteria: set[str],
    noticed: InputFindings,
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
            noticed.add(
                code, "warn", file, message, example=examples[0], n=len(examples)
            )
