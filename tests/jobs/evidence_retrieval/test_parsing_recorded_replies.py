"""The sample's recorded model: which reply meets which parsing rule.

The tables are the index of `sample/replies/rowan-8b.jsonl`; all other replies are plain
ones, mostly right.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from jobs.evidence_retrieval.inputs import SAMPLE, load, with_sample
from jobs.evidence_retrieval.parsing import Assessment, Ordering, PostAssessment
from jobs.evidence_retrieval.plan import STAGES
from jobs.evidence_retrieval.settings import EvidenceSettings
from runner.clients.client import Call, ClientOptions
from runner.clients.offline import open_recorded
from runner.job import Task
from runner.messages import ChatRequest, ParseFailure, Reply

MODEL = "rowan-8b"
FILE = SAMPLE / "replies" / f"{MODEL}.jsonl"

ONE = load(with_sample(EvidenceSettings.model_validate({})))
WHOLE = load(with_sample(EvidenceSettings.model_validate({"batch": "post"})))
PARSE = {stage.name: stage.parse for stage in STAGES}

FAILURES: Mapping[str, str] = {
    "post_02/A.2": "truncated",
    "post_03/A.2": "no_json",  # one of the two lines of text
    "post_03/A.3": "no_json",  # neither
    "post_06/A.1": "probability_out_of_range",  # true
    "post_06/A.2": "probability_out_of_range",  # not a number
    "post_06/A.3": "probability_out_of_range",  # 140
    "post_06/A.10": "no_probability",
    "post_21": "no_criteria",
    "post_07/A.2#0": "incomplete_ranking",
    "post_07/A.3#0": "truncated",
    "post_09/A.1#0": "no_json",
    "post_10/A.2#0": "no_ranking",
}

NOTED: Mapping[str, Mapping[str, int]] = {
    "post_05/A.2": {"scale_guessed": 1},  # 0.9
    "post_05/A.3": {"scale_guessed": 1},  # "0,15"
    "post_20/A.10": {"scale_guessed": 1},  # 1.0
    "post_09/A.1": {"scale_guessed": 1},  # "1.0"
    "post_10/A.2": {"unknown_sentence": 2, "relevance_clipped": 1},
    "post_18/A.3": {"no_list": 1, "inconsistent": 1},
    "post_18/A.1": {"inconsistent": 1},  # below one half, with evidence
    "post_22/A.2": {"inconsistent": 1},  # above, without
    "post_23/A.3": {"relevance_unread": 1},
    "post_12": {"unknown_criterion": 1},
    "post_17": {"repeated_criterion": 1},
    "post_04/A.3#0": {"unknown_candidate": 2},
    "post_05/A.1#0": {"repeated_candidate": 2},
    "post_05/A.2#0": {"missing_candidate": 3},
}

READ: Mapping[str, tuple[float, Mapping[int, int]]] = {
    "post_01/A.1": (0.88, {2: 95}),  # a byte order mark and blanks
    "post_01/A.2": (0.81, {3: 90}),  # a fenced block
    "post_01/A.3": (0.79, {5: 88}),  # in prose, behind an object without the key
    "post_01/A.10": (0.04, {}),  # the block wins over the example before it
    "post_02/A.1": (0.07, {}),  # braces and quotes in a text
    "post_02/A.3": (0.06, {}),  # whole, although the output limit was met
    "post_02/A.10": (0.93, {3: 97, 2: 96}),  # lines of text
    "post_03/A.1": (0.02, {}),  # likewise, with "none"
    "post_05/A.1": (0.85, {1: 92}),  # "85%"
    "post_05/A.2": (0.9, {4: 91}),
    "post_05/A.3": (0.15, {}),
    "post_05/A.10": (0.01, {}),  # 1 is one percent
    "post_20/A.10": (1.0, {4: 98}),
    "post_09/A.1": (1.0, {1: 96}),
    "post_07/A.2": (0.84, {1: 90, 0: 20}),  # "[2]" and "S1"
    "post_07/A.3": (0.9, {2: 88, 4: 85}),  # the highest of a repeated one
    "post_10/A.2": (0.77, {5: 100}),  # clipped; 0 and 99 are no sentences
    "post_16/A.1": (0.91, {2: 100, 1: 99}),  # a bare list
    "post_16/A.2": (0.86, {3: 100}),  # a list in a list
    "post_14/A.1": (1.0, dict.fromkeys(range(5), 100)),  # the post's own instruction
}

ORDERS: Mapping[str, tuple[int, ...]] = {
    "post_01/A.1#0": (2, 0, 1, 5, 4, 3),  # 3 > 1 > 2 ...
    "post_01/A.2#0": (1, 0, 2, 3, 5, 4),  # [2] > [1] ...
    "post_02/A.10#0": (0, 1, 2, 3, 5, 4),  # "[1]", "S2"
    "post_05/A.2#0": (3, 0, 1, 2, 4, 5),  # missing ones in the order they came in
}


def _parsed() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, line in enumerate(FILE.read_text().splitlines(), start=1):
        each = json.loads(line)
        key = each["key"]
        task = Task(
            number=number, stage=each["stage"], key=key, model=MODEL, replicate=1
        )
        reply = Reply(
            text=each["response"], finish_reason=each.get("finish_reason", "stop")
        )
        dataset = ONE if "/" in key else WHOLE
        found[key] = PARSE[each["stage"]](dataset, task, reply)
    return found


PARSED = _parsed()


def test_every_unreadable_reply_is_in_the_index_with_its_reason() -> None:
    reasons = {k: v.reason for k, v in PARSED.items() if isinstance(v, ParseFailure)}
    assert reasons == FAILURES


def test_whatever_had_to_be_mended_is_in_the_index() -> None:
    read = {k: v for k, v in PARSED.items() if not isinstance(v, ParseFailure)}
    assert {key: value.noted for key, value in read.items() if value.noted} == NOTED


@pytest.mark.parametrize("key", READ)
def test_what_is_read_of_a_query(key: str) -> None:
    found = PARSED[key]
    assert isinstance(found, Assessment)
    assert (found.probability, dict(found.relevance)) == READ[key]


@pytest.mark.parametrize("key", ORDERS)
def test_what_is_read_of_an_order(key: str) -> None:
    found = PARSED[key]
    assert isinstance(found, Ordering)
    assert found.indices == ORDERS[key]


def test_two_posts_leave_a_criterion_to_be_asked_alone() -> None:
    short = {
        key: sorted(
            {c.id for c in ONE.criteria}
            - {id_ for id_, a in found.criteria.items() if isinstance(a, Assessment)}
        )
        for key, found in PARSED.items()
        if isinstance(found, PostAssessment)
    }
    assert {key: ids for key, ids in short.items() if ids} == {
        "post_11": ["A.2"],
        "post_13": ["A.1"],
    }


def test_the_client_for_recordings_reads_the_file() -> None:
    async def answer() -> str:
        client = open_recorded(str(FILE), ClientOptions())
        task = Task(
            number=1, stage="assess", key="post_02/A.2", model=MODEL, replicate=1
        )
        request = ChatRequest(messages=(), max_tokens=1)
        try:
            received = await client.call(Call(task=task, request=request))
        finally:
            await client.close()
        assert isinstance(received.reply, Reply)
        return received.reply.finish_reason

    assert asyncio.run(answer()) == "length"
