"""`siftlog prepare screening`: the validation set as a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from jobs.screening.corpus import Corpus, Text
from jobs.screening.difficulty.contamination import macro_confirmed, together
from jobs.screening.difficulty.topic import macro_drift
from jobs.screening.graph.relations import Graph
from jobs.screening.inputs.tables import read_corpus, table_paths
from jobs.screening.judgement import REASON_CODES
from jobs.screening.prepared import columns, files
from jobs.screening.prepared.building import Built, build
from jobs.screening.prepared.reading import MANIFEST
from jobs.screening.prepared.statistics import Overview, overview
from jobs.screening.prepared.summary import summary_text
from jobs.screening.settings import INPUTS, Settings
from jobs.screening.validation_set import KINDS
from runner.job import InputFile, Prepared
from runner.workload import input_hashes

SAMPLER = 1
"""Version of the draw; raised when the same inputs come to another set."""

_SCORING = frozenset(
    {"unclear", "threshold", "ensemble", "wss", "wss_level", "recall_share"}
    | {"prevalence", "boot_b", "boot_seed", "level", "interval", "min_clusters"}
    | {"limit", "confidence_kind"}
)
_ASKING = frozenset(
    {
        "stages",
        "title_exclude_below",
        "criteria_source",
        "title_criteria",
        "show_ids",
        "show_year",
    }
    | {"max_prompt_tokens", "max_output_tokens", "temperature", "structured", "reask"}
    | {"ascii"}
)
"""Settings that no set depends on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What is said of a set."""

    text: str
    json: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFolder:
    """A set that is about to be written; its inputs have been read and are whole."""

    settings: Settings
    corpus: Corpus = field(repr=False)

    def write(self, folder: Path) -> Made:
        """Write all files of the set into an empty folder."""
        settings, corpus = self.settings, self.corpus
        graph = Graph(corpus, settings.max_paper_degree)
        with (
            files.table(folder / "candidates.csv", columns.CANDIDATES) as candidates,
            files.table(folder / "validation_set.csv", columns.RECORDS) as records,
        ):
            built = build(
                corpus,
                graph,
                settings,
                candidates=candidates.add,
                records=lambda drawn: records.add(map(files.record_row, drawn)),
            )
        _write_tables(folder, built)
        files.write_jsonl(
            folder / "reviews.jsonl",
            (
                files.review_json(
                    review,
                    corpus.reviews.get(review, Text()),
                    corpus.criteria.get(review),
                )
                for review in built.reviews
            ),
        )
        files.write_jsonl(
            folder / "papers.jsonl",
            (
                files.paper_json(paper, corpus.text(paper))
                for paper in sorted(built.papers)
            ),
        )
        summary = _summary(corpus, graph, built)
        files.write_json(folder / "summary.json", summary)
        made = sorted(path for path in folder.iterdir())
        files.write_json(folder / MANIFEST, _manifest(settings, made))
        return Made(text=summary_text(summary, built.drawn), json=summary)


def prepared_set(settings: Settings) -> SetFolder:
    """Read all inputs; nothing is written before they are known to be whole.

    Raises:
        UsageError: no inputs are named.
        DatasetError: one of them is off.
    """
    return SetFolder(settings=settings, corpus=read_corpus(settings))


SUBCOMMANDS: Mapping[str, Callable[[Settings], Prepared | SetFolder]] = {
    "": prepared_set
}
"""By the word that follows the job's name; none does."""


def _write_tables(folder: Path, built: Built) -> None:
    with files.table(folder / "near_miss_stats.csv", columns.STATISTICS) as rows:
        rows.add(map(files.statistics_row, built.statistics))
    with files.table(folder / "topic_drift.csv", columns.DRIFT) as rows:
        for each in built.drift:
            rows.add(files.drift_rows(each))
    with files.table(folder / "contamination.csv", columns.CONTAMINATION) as rows:
        rows.add(
            files.contamination_row(review, each)
            for review, each in built.contamination.items()
        )


def _summary(corpus: Corpus, graph: Graph, built: Built) -> dict[str, Any]:
    analysed = {each.review for each in built.analysed if each.n_candidates}
    drift = [each for each in built.drift if each.review in analysed]
    known = [
        built.contamination[r] for r in sorted(analysed & set(built.contamination))
    ]
    every = together(built.contamination.values())
    return {
        "inputs": {
            **corpus.sizes,
            "shared_papers": graph.n_shared,
            "largest_paper_degree": graph.max_degree,
            "hubs_ignored": graph.n_hubs,
        },
        "reason_codes": _reason_codes(corpus),
        "near_misses": _overview_json(overview(built.analysed), built),
        "set": {
            "reviews": len(built.reviews),
            "records": built.kinds.total(),
            "kinds": dict(built.kinds),
            "pools": dict(built.pools),
            "dropped": dict(sorted(built.dropped.items())),
            "short": {review: dict(lack) for review, lack in built.short.items()},
        },
        "topic_drift": {
            "reviews": len(drift),
            "macro": macro_drift(drift),
            "too_easy": {
                kind: easy
                for kind in KINDS
                if (easy := [each.review for each in drift if each.is_easy(kind)])
            },
        },
        "contamination": {
            **asdict(every),
            "n": every.n,
            "share_confirmed_micro": every.share_confirmed,
            "share_confirmed_macro": macro_confirmed(known),
            "reviews": len(known),
            "lower": every.lower,
            "upper": every.upper,
        }
        if built.contamination
        else None,
        "findings": [asdict(each) for each in corpus.findings],
    }


def _reason_codes(corpus: Corpus) -> dict[str, int]:
    """Exclusions by the code of their reason; those without a reason have none."""
    counts = Counter(
        each.reason_code for each in corpus.exclusions if each.status == "excluded"
    )
    return {code: counts[code] for code in REASON_CODES if counts[code]}


def _overview_json(seen: Overview, built: Built) -> dict[str, Any]:
    figures = seen.candidates
    return {
        "reviews_analysed": seen.analysed,
        "reviews_with_candidates": seen.with_candidates,
        "share_with_candidates": seen.share,
        "total": seen.total,
        "mean": figures.mean,
        "median": figures.median,
        "min": figures.min,
        "max": figures.max,
        "std": figures.std,
        "histogram": dict(seen.histogram),
        "all_reviews_total": sum(each.n_candidates for each in built.statistics),
    }


def _manifest(settings: Settings, made: Iterable[Path]) -> dict[str, Any]:
    """What the set was made from, how, and its own files.

    Args:
        settings: whose options stand in their order.
        made: the files of the set.
    """
    paths = {
        **table_paths(settings),
        **{
            name: path
            for name in ("excluded", "criteria", "reason_map")
            if (path := getattr(settings, name)) is not None
        },
    }
    left_out = {*INPUTS, "records", *_SCORING, *_ASKING}
    options = settings.model_dump(mode="json", exclude=left_out)
    hashes = _hashes(paths)
    return {
        "sampler_version": SAMPLER,
        "inputs": {
            name: {"file": path.name, "sha256": hashes[name]}
            for name, path in paths.items()
        },
        "options": options,
        "files": _hashes({path.name: path for path in made}),
    }


def _hashes(paths: Mapping[str, Path]) -> dict[str, str]:
    """The SHA-256 of each file, by its name here."""
    named = (InputFile(setting=name, path=path) for name, path in paths.items())
    return {found.setting: found.sha256 for found in input_hashes(named)}
