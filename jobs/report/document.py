"""The frame of a page: its head, its title, links to its sections, the sections.

A page forbids itself everything but its own style sheet, by hash, and pictures that
stand inside it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from itertools import chain

from jobs.report.markup import Child, Element, element


def document(
    title: str, header: Child, sections: Mapping[str, Child], footer: Element
) -> str:
    """A whole page as text.

    Args:
        title: of the page.
        header: what stands between title and links.
        sections: by title, none of them empty.
        footer: the end.
    """
    body = element(
        "body",
        element(
            "header",
            element("h1", title),
            header,
            element(
                "nav",
                element("ul", (element("li", _link(each)) for each in sections)),
                aria_label="Sections",
            ),
        ),
        element(
            "main", chain.from_iterable(_section(*part) for part in sections.items())
        ),
        footer,
    )
    root = element("html", _head(title), body, lang="en")
    return f"<!DOCTYPE html>\n{root}\n"


def facts_list(facts: Mapping[str, str]) -> Element:
    """What a page is about, name by name."""
    pairs: Iterable[Child] = (
        (element("dt", name), element("dd", value)) for name, value in facts.items()
    )
    return element("dl", pairs, class_="facts")


def _head(title: str) -> Element:
    style = files("jobs.report").joinpath("page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        # the style sheet is the project's own, and its hash is of these very bytes
        element("style", Element(style)),
    )


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _link(title: str) -> Element:
    return element("a", title, href=f"#{_anchor(title)}")


def _section(title: str, inside: Child) -> Iterable[Element]:
    anchor = _anchor(title)
    yield element(
        "section",
        element("h2", title, id=anchor),
        inside,
        aria_labelledby=anchor,
    )
