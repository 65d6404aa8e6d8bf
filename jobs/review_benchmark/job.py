"""Declares the job review-benchmark: the modules of each part of its two modes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NoReturn

from jobs.kit.job import Deferred, either
from jobs.review_benchmark import baseline as lexical
from jobs.review_benchmark import inputs as files
from jobs.review_benchmark import plan as searching
from jobs.review_benchmark import requests
from jobs.review_benchmark.extraction import plan as extracting
from jobs.review_benchmark.extraction import review_text
from jobs.review_benchmark.extraction.review_text import ExtractionInputs
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.parsing import STAGES
from jobs.review_benchmark.prompts import WORDING
from jobs.review_benchmark.settings import EVERYDAY, ReviewBenchmarkSettings
from runner.errors import UsageError
from runner.job import Answers, Job


def _names_review(settings: ReviewBenchmarkSettings) -> bool:
    """Return whether settings name a review to extract from."""
    return settings.extract is not None


def _is_extraction(dataset: object) -> bool:
    """Return whether the data are a review's text."""
    return isinstance(dataset, ExtractionInputs)


def _has_truth(dataset: ReviewDataset) -> bool:
    """Return whether published reviews list the studies to find."""
    return dataset.has_truth


def _accept(first: object) -> None:
    """Accept anything."""
    del first


def _no_titles(dataset: ExtractionInputs) -> Iterator[tuple[str, str]]:
    """Return no titles: a review's text is one item."""
    del dataset
    return iter(())


def _refuse_explain(
    dataset: ExtractionInputs, answers: Answers | None, items: tuple[str, ...]
) -> NoReturn:
    del dataset, answers, items
    raise UsageError(
        "explain is about runs that search papers; what was read from "
        "a review's text, with its quotes and pages, is in "
        "extraction_<id>.json among the files of the scoring."
    )


def _describe_extraction(dataset: ExtractionInputs) -> tuple[str, ...]:
    """Describe the data of an extraction."""
    del dataset
    return ("Included studies, as the text of one review lists them.",)


class ReviewBenchmark(Job):
    """Can an agent rebuild a Cochrane review's list of included studies?

    In its other mode, `extract`, it reads that list from a review's own text.
    """

    name = "review-benchmark"
    version = "2"
    Settings = ReviewBenchmarkSettings
    everyday = EVERYDAY
    stages = STAGES
    prompts = WORDING
    prepare_runs = ("extract",)
    implied: Mapping[str, tuple[str, str]] = {
        "judge_model": ("verdict", "judge"),
        "embed_model": ("verdict", "embedding"),
    }

    with_sample = staticmethod(files.with_sample)
    require = either(_names_review, _accept, files.require)
    load = either(_names_review, review_text.load, files.load)
    inputs = either(_names_review, review_text.inputs, files.inputs)
    admit = either(_is_extraction, _accept, files.admit)

    plan = either(_is_extraction, extracting.plan, searching.plan)
    titles = either(_is_extraction, _no_titles, searching.titles)
    reaches = either(_is_extraction, extracting.reaches, searching.planned_stages)
    request = either(_is_extraction, extracting.request, requests.request)
    follow_up = either(_is_extraction, extracting.follow_up, searching.follow_up)
    baseline = staticmethod(lexical.baseline)

    score = either(
        _is_extraction,
        Deferred("jobs.review_benchmark.extraction.score:score"),
        either(
            _has_truth,
            Deferred("jobs.review_benchmark.score:score"),
            Deferred("jobs.review_benchmark.score_without_truth:score"),
        ),
    )
    evaluation = Deferred("jobs.review_benchmark.score:EVALUATION")
    describe = either(
        _is_extraction,
        _describe_extraction,
        Deferred("jobs.review_benchmark.explain:describe"),
    )
    explain = either(
        _is_extraction,
        _refuse_explain,
        Deferred("jobs.review_benchmark.explain:explain"),
    )
    prepare: Mapping[str, Deferred] = {
        "coverage": Deferred("jobs.review_benchmark.coverage:coverage"),
        "import": Deferred("jobs.review_benchmark.prepare:PaperImport.of"),
        "pairs": Deferred(
            "jobs.review_benchmark.adversarial_pairs:AdversarialReport.of"
        ),
    }
    importer = Deferred("jobs.review_benchmark.result_files:importer")
    labelling = Deferred("jobs.review_benchmark.labelling:labelling")


job = ReviewBenchmark()
