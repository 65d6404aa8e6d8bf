"""What the logs of a run say of one task, and which of them is believed.

Pure. Each log tells a legal story of the task, and its teller knows nothing of the
others: one may have been lost with its disk and come back after another had done the
work again. Whatever is merged first, the same claim is the best one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from store.task import TaskDraft, TaskState

_S = TaskState
ORDER = (_S.COMPLETED, _S.FAILED, _S.SKIPPED, _S.RUNNING, _S.WAITING, _S.QUEUED)
"""An answer counts before all else; what is final, before what a lost log left open."""

Claims: TypeAlias = Mapping[int, TaskDraft]
"""A task as each part, by its number, sees it."""


class Precedence(NamedTuple):
    """Of two replies to one task, the lower one counts."""

    is_adopted: bool  #: the copy of another log's: after the original
    attempt: int
    writer: bytes
    own_seq: int  #: in its own log


_NO_REPLY = Precedence(is_adopted=False, attempt=0, writer=b"", own_seq=0)


def best(
    claims: Claims,
    replies: Mapping[int, Precedence],
    reopened: Mapping[int, int],
    logs: Mapping[int, bytes],
) -> TaskDraft:
    """The task's row in the union: the best claim, with what all of them cost.

    A log in which a person had the task asked again knows better than those in which
    nobody did: what they have is not wanted any more.

    Args:
        claims: at least one.
        replies: by event, how those that `reply_seq` names take precedence.
        reopened: by part, how often the task was put back in the queue, if it was.
        logs: by part, the id of its log: it decides where nothing else does.
    """
    drafts = claims.values()
    costs = [draft.cost_pico for draft in drafts if draft.cost_pico is not None]
    events = [draft.event_seq for draft in drafts if draft.event_seq is not None]
    chosen = min(
        claims,
        key=lambda part: (
            -reopened.get(part, 0),
            *_rank(claims[part], replies),
            logs[part],
        ),
    )
    return replace(
        claims[chosen],
        attempts=max(draft.attempts for draft in drafts),
        abandoned=sum(draft.abandoned for draft in drafts),
        cost_pico=sum(costs) if costs else None,
        updated_seq=max(draft.updated_seq for draft in drafts),
        event_seq=max(events, default=None),
    )


def _rank(
    draft: TaskDraft, replies: Mapping[int, Precedence]
) -> tuple[int, Precedence]:
    reply = None
    if draft.state is TaskState.COMPLETED and draft.reply_seq is not None:
        reply = replies.get(draft.reply_seq)
    return ORDER.index(draft.state), reply or _NO_REPLY
