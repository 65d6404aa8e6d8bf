"""Declares the job evidence-retrieval and the modules of its parts."""

from __future__ import annotations

from jobs.evidence_retrieval.baseline import baseline
from jobs.evidence_retrieval.data import WORDING
from jobs.evidence_retrieval.inputs import inputs, load, require, with_sample
from jobs.evidence_retrieval.plan import (
    STAGES,
    follow_up,
    needed_tasks,
    plan,
    post_of,
    titles,
)
from jobs.evidence_retrieval.prompts import request
from jobs.evidence_retrieval.settings import EVERYDAY, PROFILES, EvidenceSettings
from jobs.kit.job import Deferred
from runner.job import Job


class EvidenceRetrieval(Job):
    """Which sentences of a post are evidence for a criterion, and are there any?"""

    name = "evidence-retrieval"
    version = "2"
    Settings = EvidenceSettings
    everyday = EVERYDAY
    profiles = PROFILES
    stages = STAGES
    prompts = WORDING

    with_sample = staticmethod(with_sample)
    require = staticmethod(require)
    load = staticmethod(load)
    inputs = staticmethod(inputs)

    plan = staticmethod(plan)
    reaches = staticmethod(needed_tasks)
    item = staticmethod(post_of)
    titles = staticmethod(titles)
    request = staticmethod(request)
    follow_up = staticmethod(follow_up)
    baseline = staticmethod(baseline)

    score = Deferred("jobs.evidence_retrieval.score:score_run")
    evaluation = Deferred("jobs.evidence_retrieval.score:EVALUATION")
    describe = Deferred("jobs.evidence_retrieval.explain:describe")
    explain = Deferred("jobs.evidence_retrieval.explain:explain")
    quotes = Deferred("jobs.evidence_retrieval.explain_query:quotes")
    labelling = Deferred("jobs.evidence_retrieval.labelling:labelling")
    prepare = Deferred("jobs.evidence_retrieval.prepare:SUBCOMMANDS")
    importer = Deferred("jobs.evidence_retrieval.importer:importer")


job = EvidenceRetrieval()
