"""Prepares the validation set as a folder: `siftlog prepare screening`.

The folder is built once, with the same bytes on every machine, and summarised in a few
lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from jobs.kit.text_format import fixed, plural
from jobs.screening import inputs, set_files
from jobs.screening.corpus import Corpus, read_corpus, table_paths
from jobs.screening.data import KINDS, NO_TEXT, REASON_CODES, RecordKind
from jobs.screening.graph import Graph, overview
from jobs.screening.inputs import MANIFEST
from jobs.screening.set_files import BuiltSet, build, macro_confirmed, together
from jobs.screening.settings import FILE_LISTS, INPUTS, ScreeningSettings
from jobs.screening.topic_drift import macro_drift
from runner.fingerprint import input_hashes
from runner.job import InputFile, Prepared
from store.document import Fact, as_text


def summary_text(
    summary: Mapping[str, Any], drawn_counts: Mapping[str, Mapping[RecordKind, int]]
) -> str:
    """Return the summary of a set as text.

    Args:
        summary: the content of summary.json.
        drawn_counts: by review, the papers drawn of each kind that is short.
    """
    inputs, near, set_counts = (
        summary[part] for part in ("inputs", "near_misses", "set")
    )
    lines = [
        _fact(
            "inputs",
            f"{plural(inputs['reviews'], 'review')} "
            f"({inputs['reviews_citing']:,} cite anything), "
            f"{plural(inputs['papers'], 'paper')} "
            f"({inputs['papers_with_abstract']:,} with abstract), "
            f"{plural(inputs['edges'], 'edge')} ({inputs['edges_unique']:,} unique), "
            f"{plural(inputs['shared_papers'], 'shared paper')} (by at most "
            f"{plural(inputs['largest_paper_degree'], 'review')})",
        ),
        *(_fact("", remark) for remark in _input_remarks(summary)),
        _fact(
            "near misses",
            f"{plural(near['reviews_analysed'], 'review')} analysed, "
            f"{near['reviews_with_candidates']:,} with candidates"
            f"{_share(near['share_with_candidates'])}; their candidates: "
            f"total {near['total']:,}{_in_all(near)} mean {_figure(near['mean'])} "
            f"median {_figure(near['median'])} min {_figure(near['min'])} "
            f"max {_figure(near['max'])} std {_figure(near['std'])}",
        ),
        _fact("", "  ".join(f"{name}: {n}" for name, n in near["histogram"].items())),
        _fact(
            "set",
            f"{plural(set_counts['reviews'], 'review')}, "
            f"{plural(set_counts['records'], 'record')}: "
            + (
                ", ".join(f"{n:,} {kind}" for kind, n in set_counts["kinds"].items())
                or "none"
            ),
        ),
    ]
    if not set_counts["records"]:
        lines.append(
            _fact(
                "",
                "no review is left: take other --negatives, "
                "--keep-without-negatives or a lower --min-included",
            )
        )
    if set_counts["dropped"]:
        left = ", ".join(
            f"{n:,} {reason}" for reason, n in set_counts["dropped"].items()
        )
        lines.append(_fact("left out", left))
    if set_counts["short"]:
        lines.append(_fact("short", _short(set_counts["short"], drawn_counts)))
    drift = summary["topic_drift"]
    if drift["reviews"]:
        macro_figures = "  ".join(
            f"{name} {_figure(value)}" for name, value in drift["macro"].items()
        )
        lines.append(_fact("topic drift", macro_figures))
    lines += [
        _fact(
            "",
            f"{kind} negatives of {plural(len(easy), 'review')} are too easy: topic "
            "alone nearly separates them",
        )
        for kind, easy in drift["too_easy"].items()
    ]
    doubt = summary["contamination"]
    if doubt:
        lines.append(
            _fact(
                "contamination",
                f"{plural(doubt['n'], 'candidate')} of all reviews: "
                f"{doubt['confirmed']:,} confirmed, {doubt['pending']:,} pending, "
                f"{plural(doubt['duplicate_suspect'], 'duplicate suspect')}, "
                f"{doubt['unverified']:,} unverified; eligible between "
                f"{_figure(doubt['lower'])} and {_figure(doubt['upper'])}",
            )
        )
        lines.append(
            _fact(
                "",
                f"share confirmed {_figure(doubt['share_confirmed_micro'])}, "
                f"mean of {plural(doubt['reviews'], 'review')} "
                f"{_figure(doubt['share_confirmed_macro'])}",
            )
        )
    for finding in summary["findings"]:
        such = f", such as {finding['example']}" if finding["example"] else ""
        text = f"{finding['message']} {finding['where']}: {finding['n']:,}{such}"
        lines.append(_fact(finding["severity"], text))
    return as_text(lines)


def _fact(label: str, text: str) -> Fact:
    return Fact(label, text, width=15, is_wide=True)


def _input_remarks(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield further remarks about the inputs."""
    inputs, codes = summary["inputs"], summary["reason_codes"]
    if inputs["hubs_ignored"]:
        hubs = plural(inputs["hubs_ignored"], "hub paper")
        yield f"{hubs} did not relate reviews"
    if inputs["citing_reviews_without_row"]:
        absent = plural(inputs["citing_reviews_without_row"], "review")
        yield f"{absent} with citations but without title and abstract"
    if inputs["exclusions"]:
        yield (
            f"{plural(inputs['exclusions'], 'known exclusion')} "
            f"({inputs['exclusions_with_text']:,} in the paper table), "
            f"{inputs['awaiting_or_ongoing']:,} awaiting assessment or ongoing"
        )
    if codes:
        by_code = ", ".join(f"{n:,} {code}" for code, n in codes.items())
        yield f"reasons for exclusion, coded: {by_code}"


def _short(
    short: Mapping[str, Mapping[RecordKind, int]],
    drawn_counts: Mapping[str, Mapping[RecordKind, int]],
) -> str:
    """Describe the kinds with too few papers, and the number that were drawn.

    The shortfall alone would mislead: a request for a million papers means all.
    """
    kinds: dict[RecordKind, list[tuple[int, int]]] = {}
    for review, lack in short.items():
        for kind, n in lack.items():
            kinds.setdefault(kind, []).append((drawn_counts[review][kind], n))
    short_kinds = ", ".join(
        f"{sum(n for n, _ in counts):,} of {sum(map(sum, counts)):,} {kind} asked "
        f"for in {plural(len(counts), 'review')}"
        for kind, counts in kinds.items()
    )
    return (
        f"{plural(len(short), 'review')} with fewer papers than "
        f"requested, all sampled: {short_kinds}"
    )


def _in_all(near: Mapping[str, Any]) -> str:
    """Return the total of all reviews, if those that are not analysed have more."""
    total = near["all_reviews_total"]
    return "" if total == near["total"] else f" ({total:,} of all reviews)"


def _share(value: float | None) -> str:
    return "" if value is None else f" ({100 * value:.1f}%)"


def _figure(value: float | None) -> str:
    """Format with at most three decimals; n/a if undefined."""
    return fixed(value).rstrip("0").rstrip(".")


SAMPLER = 1
"""Version of the draw; increased when the same inputs give another set."""

_SCORING = frozenset(
    {"unclear", "threshold", "ensemble", "wss", "wss_level", "recall_share"}
    | {"prevalence", "boot_b", "boot_seed", "level", "interval", "min_clusters"}
    | {"limit", "confidence_kind"}
)
_REQUEST_SETTINGS = frozenset(
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
"""Settings that do not affect a set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSet:
    """The summary of a set, as text and JSON."""

    text: str
    json: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFolder:
    """A set to be written; its inputs have been read and validated."""

    settings: ScreeningSettings
    corpus: Corpus = field(repr=False)

    def write(self, folder: Path) -> PreparedSet:
        """Write all files of the set into an empty folder."""
        settings, corpus = self.settings, self.corpus
        graph = Graph(corpus, settings.max_paper_degree)
        with (
            set_files.csv_table(
                folder / "candidates.csv", inputs.CANDIDATES
            ) as candidates,
            set_files.csv_table(
                folder / "validation_set.csv", inputs.RECORDS
            ) as records,
        ):
            built = build(
                corpus,
                graph,
                settings,
                candidates=candidates.add,
                records=lambda drawn_records: records.add(
                    map(set_files.record_row, drawn_records)
                ),
            )
        set_files.write_table(folder, set_files.STATISTICS, built.statistics)
        drift = set_files.kind_drifts(built.drift)
        set_files.write_table(folder, set_files.DRIFT, drift)
        contamination = built.contamination.items()
        set_files.write_table(folder, set_files.CONTAMINATION, contamination)
        set_files.write_jsonl(
            folder / "reviews.jsonl",
            (
                set_files.review_json(
                    review,
                    corpus.reviews.get(review, NO_TEXT),
                    corpus.criteria.get(review),
                )
                for review in built.reviews
            ),
        )
        set_files.write_jsonl(
            folder / "papers.jsonl",
            (
                set_files.paper_json(paper, corpus.text(paper))
                for paper in sorted(built.papers)
            ),
        )
        summary = _summary(corpus, graph, built)
        set_files.write_json(folder / "summary.json", summary)
        set_paths = sorted(path for path in folder.iterdir())
        set_files.write_json(folder / MANIFEST, _manifest(settings, set_paths))
        return PreparedSet(text=summary_text(summary, built.drawn_counts), json=summary)


def prepare_set(settings: ScreeningSettings) -> SetFolder:
    """Read and validate all inputs, before anything is written.

    Raises:
        UsageError: no inputs are named.
        DatasetError: one of them is invalid.
    """
    return SetFolder(settings=settings, corpus=read_corpus(settings))


SUBCOMMANDS: Mapping[str, Callable[[ScreeningSettings], Prepared | SetFolder]] = {
    "": prepare_set
}
"""Functions by the word after the job's name; there is only the empty one."""


def _summary(corpus: Corpus, graph: Graph, built: BuiltSet) -> dict[str, Any]:
    analysed = {
        statistics.review for statistics in built.analysed if statistics.n_candidates
    }
    drift = [
        review_drift for review_drift in built.drift if review_drift.review in analysed
    ]
    contaminations = [
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
        "near_misses": {
            **overview(built.analysed),
            "all_reviews_total": sum(row.n_candidates for row in built.statistics),
        },
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
                if (
                    easy := [
                        review_drift.review
                        for review_drift in drift
                        if review_drift.is_easy(kind)
                    ]
                )
            },
        },
        "contamination": {
            **asdict(every),
            "n": every.n,
            "share_confirmed_micro": every.share_confirmed,
            "share_confirmed_macro": macro_confirmed(contaminations),
            "reviews": len(contaminations),
            "lower": every.lower,
            "upper": every.upper,
        }
        if built.contamination
        else None,
        "findings": [asdict(finding) for finding in corpus.findings],
    }


def _reason_codes(corpus: Corpus) -> dict[str, int]:
    """Count exclusions by the code of their reason; blank reasons have none."""
    counts = Counter(
        exclusion.reason_code
        for exclusion in corpus.exclusions
        if exclusion.status == "excluded"
    )
    return {code: counts[code] for code in REASON_CODES if counts[code]}


def _manifest(settings: ScreeningSettings, set_paths: Iterable[Path]) -> dict[str, Any]:
    """Return the manifest: inputs, options and files of the set.

    Args:
        settings: settings, whose options keep their order.
        set_paths: the files of the set.
    """
    paths = {
        **table_paths(settings),
        **{
            name: path
            for name in ("excluded", "criteria", "reason_map")
            if (path := getattr(settings, name)) is not None
        },
    }
    left_out = {*INPUTS, *FILE_LISTS, "question", *_SCORING, *_REQUEST_SETTINGS}
    options = settings.model_dump(mode="json", exclude=left_out)
    hashes = _hashes(paths)
    return {
        "sampler_version": SAMPLER,
        "inputs": {
            name: {"file": path.name, "sha256": hashes[name]}
            for name, path in paths.items()
        },
        "options": options,
        "files": _hashes({path.name: path for path in set_paths}),
    }


def _hashes(paths: Mapping[str, Path]) -> dict[str, str]:
    """Return the SHA-256 of each file, by name."""
    input_files = (InputFile(setting=name, path=path) for name, path in paths.items())
    return {
        file_hash.setting: file_hash.sha256 for file_hash in input_hashes(input_files)
    }
