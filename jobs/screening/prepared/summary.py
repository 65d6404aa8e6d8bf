"""A set in a few lines, for whoever has just built it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobs.screening.validation_set import Kind
from jobs.text import plural


def summary_text(
    summary: Mapping[str, Any], drawn: Mapping[str, Mapping[Kind, int]]
) -> str:
    """The summary of a set as people read it.

    Args:
        summary: the content of summary.json.
        drawn: by review, the papers drawn of each kind that is short.
    """
    inputs, near, made = (summary[part] for part in ("inputs", "near_misses", "set"))
    lines = [
        (
            f"inputs         {plural(inputs['reviews'], 'review')} "
            f"({inputs['reviews_citing']:,} cite anything), "
            f"{plural(inputs['papers'], 'paper')} "
            f"({inputs['papers_with_abstract']:,} with abstract), "
            f"{plural(inputs['edges'], 'edge')} ({inputs['edges_unique']:,} unique), "
            f"{plural(inputs['shared_papers'], 'shared paper')} (by at most "
            f"{plural(inputs['largest_paper_degree'], 'review')})"
        ),
        *_input_remarks(summary),
        (
            f"near misses    {plural(near['reviews_analysed'], 'review')} analysed, "
            f"{near['reviews_with_candidates']:,} with candidates"
            f"{_share(near['share_with_candidates'])}; their candidates: "
            f"total {near['total']:,}{_in_all(near)} mean {_figure(near['mean'])} "
            f"median {_figure(near['median'])} min {_figure(near['min'])} "
            f"max {_figure(near['max'])} std {_figure(near['std'])}"
        ),
        "               "
        + "  ".join(f"{name}: {n}" for name, n in near["histogram"].items()),
        (
            f"set            {plural(made['reviews'], 'review')}, "
            f"{plural(made['records'], 'record')}: "
            + (
                ", ".join(f"{n:,} {kind}" for kind, n in made["kinds"].items())
                or "none"
            )
        ),
    ]
    if not made["records"]:
        lines.append(
            "               no review is left: take other --negatives, "
            "--keep-without-negatives or a lower --min-included"
        )
    if made["dropped"]:
        left = ", ".join(f"{n:,} {why}" for why, n in made["dropped"].items())
        lines.append(f"left out       {left}")
    if made["short"]:
        lines.append(f"short          {_short(made['short'], drawn)}")
    drift = summary["topic_drift"]
    if drift["reviews"]:
        shown = "  ".join(
            f"{name} {_figure(value)}" for name, value in drift["macro"].items()
        )
        lines.append(f"topic drift    {shown}")
    lines += [
        f"               {kind} negatives of {plural(len(easy), 'review')} are too "
        "easy: topic alone nearly tells them"
        for kind, easy in drift["too_easy"].items()
    ]
    doubt = summary["contamination"]
    if doubt:
        lines.append(
            f"contamination  {plural(doubt['n'], 'candidate')} of all reviews: "
            f"{doubt['confirmed']:,} confirmed, {doubt['pending']:,} pending, "
            f"{plural(doubt['duplicate_suspect'], 'duplicate suspect')}, "
            f"{doubt['unverified']:,} unverified; eligible between "
            f"{_figure(doubt['lower'])} and {_figure(doubt['upper'])}"
        )
        lines.append(
            "               "
            f"share confirmed {_figure(doubt['share_confirmed_micro'])}, "
            f"mean of {plural(doubt['reviews'], 'review')} "
            f"{_figure(doubt['share_confirmed_macro'])}"
        )
    lines += [
        f"{found['severity']:14} {found['message']} {found['where']}: {found['n']:,}"
        + (f", such as {found['example']}" if found["example"] else "")
        for found in summary["findings"]
    ]
    return "\n".join(lines)


def _input_remarks(summary: Mapping[str, Any]) -> Iterator[str]:
    """What else is to be known of the inputs, where there is anything."""
    inputs, codes = summary["inputs"], summary["reason_codes"]
    if inputs["hubs_ignored"]:
        yield (
            f"               {plural(inputs['hubs_ignored'], 'hub paper')} did not "
            "relate reviews"
        )
    if inputs["citing_reviews_without_row"]:
        absent = plural(inputs["citing_reviews_without_row"], "review")
        yield f"               {absent} with citations but without title and abstract"
    if inputs["exclusions"]:
        yield (
            f"               {plural(inputs['exclusions'], 'known exclusion')} "
            f"({inputs['exclusions_with_text']:,} in the paper table), "
            f"{inputs['awaiting_or_ongoing']:,} awaiting assessment or ongoing"
        )
    if codes:
        by_code = ", ".join(f"{n:,} {code}" for code, n in codes.items())
        yield f"               reasons for exclusion, coded: {by_code}"


def _short(
    short: Mapping[str, Mapping[Kind, int]], drawn: Mapping[str, Mapping[Kind, int]]
) -> str:
    """Reviews with fewer papers than asked for, and by kind how many were drawn.

    What is missing is not named alone: who asks for a million wants all there are.
    """
    kinds: dict[Kind, list[tuple[int, int]]] = {}
    for review, lack in short.items():
        for kind, n in lack.items():
            kinds.setdefault(kind, []).append((drawn[review][kind], n))
    shown = ", ".join(
        f"{sum(n for n, _ in own):,} of {sum(map(sum, own)):,} {kind} asked for in "
        f"{plural(len(own), 'review')}"
        for kind, own in kinds.items()
    )
    return (
        f"{plural(len(short), 'review')} with fewer papers than asked for, all drawn: "
        f"{shown}"
    )


def _in_all(near: Mapping[str, Any]) -> str:
    """The total of all reviews, where those that are not analysed have more."""
    total = near["all_reviews_total"]
    return "" if total == near["total"] else f" ({total:,} of all reviews)"


def _share(value: float | None) -> str:
    return "" if value is None else f" ({100 * value:.1f}%)"


def _figure(value: float | None) -> str:
    """At most three decimals; n/a where undefined."""
    return "n/a" if value is None else f"{value:.3f}".rstrip("0").rstrip(".")
