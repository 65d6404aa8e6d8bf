"""A rehearsal against a simulated model: its search plans find papers."""

from __future__ import annotations

from contextlib import closing

import msgspec

from jobs.review_benchmark import inputs
from jobs.review_benchmark import requests as asking
from jobs.review_benchmark.data import SearchPlan
from jobs.review_benchmark.parsing import parse_plan
from jobs.review_benchmark.plan import searched
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from runner.messages import Reply
from runner.simulate.model import fitting
from runner.simulate.options import Chance
from runner.simulate.requests import chat_text

SEEDS = 40


def test_simulated_plans_can_be_read_and_nearly_all_of_them_find_papers() -> None:
    dataset = inputs.load(inputs.with_sample(ReviewBenchmarkSettings()))
    assert dataset.database is not None
    found = 0
    with closing(dataset.database):
        for review in dataset.reviews:
            request = asking.plan(dataset, review)
            assert request.schema is not None
            schema = msgspec.json.decode(request.schema.json)
            for seed in range(SEEDS):
                reply = fitting(schema, chat_text(request), Chance(seed, review.id))
                plan = parse_plan(Reply(text=msgspec.json.encode(reply).decode()), 6)
                # a plan that cannot be read is replaced by the fixed one
                is_read = isinstance(plan, SearchPlan)
                found += is_read and bool(searched(dataset, review, plan).candidates)
    # 62 of 200 before queries were made of the question's words
    assert found >= 0.98 * SEEDS * len(dataset.reviews)
