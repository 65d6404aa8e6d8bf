"""Declares the job paper-investigation and the modules of its parts."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.kit.job import Deferred
from jobs.paper_investigation.baseline import baseline
from jobs.paper_investigation.data import WORDING, InvestigationDataset
from jobs.paper_investigation.inputs import inputs, load, with_sample
from jobs.paper_investigation.plan import STAGES, follow_up, plan_tasks, titles
from jobs.paper_investigation.prompts import paper_of, request
from jobs.paper_investigation.settings import EVERYDAY, PROFILES, InvestigationSettings
from runner.job import Job, Stage, TaskSpec


class PaperInvestigation(Job):
    """Which variants does a paper study, and does the model understand them?"""

    name = "paper-investigation"
    version = "2"
    Settings = InvestigationSettings
    everyday = EVERYDAY
    profiles = PROFILES
    stages = STAGES
    review_step = "data collection"
    prompts = WORDING

    with_sample = staticmethod(with_sample)
    load = staticmethod(load)
    inputs = staticmethod(inputs)

    plan = staticmethod(plan_tasks)
    titles = staticmethod(titles)
    request = staticmethod(request)
    follow_up = staticmethod(follow_up)
    baseline = staticmethod(baseline)

    score = Deferred("jobs.paper_investigation.score:score")
    evaluation = Deferred("jobs.paper_investigation.score:EVALUATION")
    describe = Deferred("jobs.paper_investigation.explain:describe")
    explain = Deferred("jobs.paper_investigation.explain:explain")
    prepare: Mapping[str, Deferred] = {
        "check": Deferred("jobs.paper_investigation.prepare_check:check_data")
    }
    importer = Deferred("jobs.paper_investigation.importer:importer")
    labelling = Deferred("jobs.paper_investigation.labelling:labelling")

    def follows(self, dataset: InvestigationDataset, stage: Stage) -> bool:
        """Return whether a stage has follow-ups: extractions do in mode investigate."""
        return stage.follows and dataset.settings.mode == "investigate"

    def item(self, dataset: InvestigationDataset, spec: TaskSpec) -> str:
        """Return the paper of a spec; in mode questions it has many specs."""
        del dataset
        return paper_of(spec.key)


job = PaperInvestigation()
