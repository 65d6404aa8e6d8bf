"""Declares the job screening and the modules of its parts."""

from __future__ import annotations

from jobs.kit.job import Deferred
from jobs.screening.baseline import baseline
from jobs.screening.inputs import admit, inputs, load, require, with_sample
from jobs.screening.parsing import STAGES
from jobs.screening.plan import follow_up, plan, planned_stages, request, titles
from jobs.screening.prompts import WORDING
from jobs.screening.settings import EVERYDAY, ScreeningSettings
from runner.job import Job


class Screening(Job):
    """Which papers should pass screening, and how many would a model lose?"""

    name = "screening"
    version = "2"
    Settings = ScreeningSettings
    everyday = EVERYDAY
    stages = STAGES
    review_step = "selection"
    prompts = WORDING

    with_sample = staticmethod(with_sample)
    require = staticmethod(require)
    load = staticmethod(load)
    admit = staticmethod(admit)
    inputs = staticmethod(inputs)

    plan = staticmethod(plan)
    titles = staticmethod(titles)
    reaches = staticmethod(planned_stages)
    request = staticmethod(request)
    follow_up = staticmethod(follow_up)
    baseline = staticmethod(baseline)

    score = Deferred("jobs.screening.score:score")
    evaluation = Deferred("jobs.screening.score:EVALUATION")
    describe = Deferred("jobs.screening.explain:describe")
    explain = Deferred("jobs.screening.explain:explain")
    explain_inputs = Deferred("jobs.screening.explain_inputs:explain_inputs")
    prepare = Deferred("jobs.screening.prepare:SUBCOMMANDS")
    labelling = Deferred("jobs.screening.labelling:labelling")
    importer = Deferred("jobs.screening.importer:importer")


job = Screening()
