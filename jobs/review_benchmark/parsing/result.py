"""What an agent made elsewhere: the file that was imported, read as a reply."""

from __future__ import annotations

import msgspec

from jobs.noticed import Noticed
from jobs.review_benchmark.inputs.results import AgentResult, result_of
from runner.errors import DatasetError
from runner.reply import ParseFailure, Reply


def parse_result(reply: Reply) -> AgentResult | ParseFailure:
    """The result in a reply; failures: `bad_result`."""
    try:
        return result_of(msgspec.json.decode(reply.text), "result", Noticed())
    except (msgspec.DecodeError, DatasetError) as error:
        return ParseFailure(reason="bad_result", detail=str(error))
