"""What a prompt shows: sentences and criteria as blocks between marks.

The wording around them is in `prompts.toml`. The sentences come first, so that a
provider's prompt cache can reuse them for all criteria of a post. What comes from files
stands between marks that carry the hash of what they enclose, so no text can close its
own mark, and instructions in it stay data.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from jobs.chat import data_block
from jobs.evidence_retrieval.dataset import Criterion
from runner.messages import TextPart


def sentences_part(sentences: Iterable[str]) -> TextPart:
    """The sentences of a post; a provider's cache may end after them."""
    return TextPart(text=data_block("sentences", _numbered(sentences)), cache=True)


def candidates_part(sentences: Iterable[str]) -> TextPart:
    """The sentences that are to be ordered."""
    return TextPart(text=data_block("candidates", _numbered(sentences)))


def criterion_block(criterion: Criterion) -> str:
    """What a post is read for."""
    return data_block("criterion", criterion.text)


def criteria_block(criteria: Sequence[Criterion]) -> str:
    """Several criteria, a line of JSON each."""
    lines = (
        json.dumps({"id": each.id, "text": each.text}, ensure_ascii=False)
        for each in criteria
    )
    return data_block("criteria", "\n".join(lines))


def _numbered(sentences: Iterable[str]) -> str:
    return "\n".join(f"[{n}] {text}" for n, text in enumerate(sentences, start=1))
