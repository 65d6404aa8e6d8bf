"""Declares the job ask and the modules of its parts."""

from __future__ import annotations

from jobs.ask.inputs import fit, inputs, load, require, with_sample
from jobs.ask.plan import (
    STAGES,
    admit,
    follow_up,
    item,
    plan,
    reaches,
    request,
    titles,
)
from jobs.ask.prompts import WORDING
from jobs.ask.settings import EVERYDAY, AskSettings, recipe_of
from jobs.kit.fields.baseline import baseline
from jobs.kit.job import Deferred
from runner.job import Job


class Ask(Job):
    """What do these papers say: a table of answers, each with its quote?"""

    name = "ask"
    version = "2"
    Settings = AskSettings
    everyday = EVERYDAY
    stages = STAGES
    review_step = "data collection"
    prompts = WORDING

    with_sample = staticmethod(with_sample)
    require = staticmethod(require)
    fit = staticmethod(fit)
    load = staticmethod(load)
    admit = staticmethod(admit)
    inputs = staticmethod(inputs)

    plan = staticmethod(plan)
    item = staticmethod(item)
    titles = staticmethod(titles)
    reaches = staticmethod(reaches)
    request = staticmethod(request)
    follow_up = staticmethod(follow_up)
    baseline = staticmethod(baseline)

    score = Deferred("jobs.ask.score:score")
    evaluation = Deferred("jobs.ask.score:EVALUATION")
    describe = Deferred("jobs.ask.explain:describe")
    explain = Deferred("jobs.ask.explain:explain")
    labelling = Deferred("jobs.ask.labelling:labelling")
    quotes = Deferred("jobs.ask.explain:quotes")

    def replicates(self, settings: AskSettings, /) -> int | None:
        """Return the number of replicates that the recipe sets."""
        return recipe_of(settings).replicates


job = Ask()
