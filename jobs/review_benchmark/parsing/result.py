"""What an agent made elsewhere: the file that was imported, read as a reply."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from jobs.inputs.rows import InputFindings
from jobs.review_benchmark.inputs.results import AgentResult, result_of
from runner.errors import DatasetError
from runner.job import guarded
from runner.messages import ParseFailure, Reply


@guarded
def parse_result(reply: Reply, where: str) -> AgentResult | ParseFailure:
    """The result in a reply; failures: `bad_result`.

    Args:
        reply: the file's text.
        where: the review and the agent, as findings name them.
    """
    noticed = InputFindings()
    try:
        result = result_of(msgspec.json.decode(reply.text), where, noticed)
    except (msgspec.DecodeError, DatasetError) as error:
        return ParseFailure(reason="bad_result", detail=str(error))
    return replace(result, findings=noticed.findings())
