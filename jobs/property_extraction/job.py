"""Declares the job property-extraction: the modules of each of its parts."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.kit.job import Deferred, either
from jobs.property_extraction.baseline import baseline
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.inputs import inputs, load, require, with_sample
from jobs.property_extraction.plan import (
    STAGES,
    fit,
    follow_up,
    plan,
    planned_stages,
    request,
    titles,
)
from jobs.property_extraction.prompts import WORDING
from jobs.property_extraction.settings import EVERYDAY, PROFILES, PropertySettings
from jobs.property_extraction.tasks import paper_of
from runner.job import Job, TaskSpec


def _verifies(dataset: PropertyDataset) -> bool:
    """Return whether names are verified instead of values extracted."""
    return dataset.settings.mode == "verify"


def _has_truth(dataset: PropertyDataset) -> bool:
    """Return whether there are curated values."""
    return dataset.has_truth


class PropertyExtraction(Job):
    """Which values of which properties does a model find in papers?"""

    name = "property-extraction"
    version = "2"
    Settings = PropertySettings
    everyday = EVERYDAY
    profiles = PROFILES
    stages = STAGES
    review_step = "data collection"
    prompts = WORDING

    with_sample = staticmethod(with_sample)
    fit = staticmethod(fit)
    require = staticmethod(require)
    load = staticmethod(load)
    inputs = staticmethod(inputs)

    titles = staticmethod(titles)
    plan = staticmethod(plan)
    reaches = staticmethod(planned_stages)
    request = staticmethod(request)
    follow_up = staticmethod(follow_up)
    baseline = staticmethod(baseline)

    score = either(
        _verifies,
        Deferred("jobs.property_extraction.score_name_verification:score_verification"),
        either(
            _has_truth,
            Deferred("jobs.property_extraction.score:score"),
            Deferred("jobs.property_extraction.score_without_truth:score"),
        ),
    )
    evaluation = Deferred("jobs.property_extraction.score:EVALUATION")
    describe = Deferred("jobs.property_extraction.explain:describe")
    explain = either(
        _verifies,
        Deferred(
            "jobs.property_extraction.score_name_verification:explain_verification"
        ),
        Deferred("jobs.property_extraction.explain:explain"),
    )
    quotes = Deferred("jobs.property_extraction.explain:quotes")
    causes = Deferred("jobs.property_extraction.aliases.differences:booked_on_aliases")
    prepare: Mapping[str, Deferred] = {
        "aliases": Deferred(
            "jobs.property_extraction.aliases.preparing:prepare_aliases"
        ),
        "lint": Deferred("jobs.property_extraction.lint:lint"),
    }
    importer = Deferred("jobs.property_extraction.importer:importer")
    labelling = Deferred("jobs.property_extraction.labelling:labelling")

    def replicates(self, settings: PropertySettings) -> int:
        """Return the number of replicates of a verification, or of a consensus."""
        if settings.mode == "verify":
            return settings.verify_replicates
        return max(1, settings.consensus)

    def item(self, dataset: PropertyDataset, spec: TaskSpec) -> str:
        """Return the paper of a chunk's spec, or the pair of names."""
        return spec.key if _verifies(dataset) else paper_of(spec.key)[0]


job = PropertyExtraction()
