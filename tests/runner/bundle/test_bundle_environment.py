"""The versions of all that took part, and what of them is another one here."""

from __future__ import annotations

import platform
from dataclasses import replace
from importlib.metadata import version

from runner.bundle.manifest import differences, environment, required


def test_what_a_package_requires_is_listed_with_what_that_requires() -> None:
    names = required("siftlog")
    assert {"siftlog", "pydantic", "pydantic-core", "numpy"} <= names
    here = environment(names)
    assert here.python == platform.python_version()
    assert here.packages["numpy"] == version("numpy")
    assert list(here.packages) == sorted(names)


def test_nothing_in_it_names_the_machine() -> None:
    assert platform.node() not in str(environment(required("siftlog")))


def test_every_difference_is_told_with_both_versions() -> None:
    here = environment(["numpy", "siftlog"])
    assert differences(here, here) == ()
    then = replace(here, python="3.9.1", packages={"numpy": "1.0", "gone": "2"})
    assert differences(then, replace(here, packages={"numpy": "2.0", "new": "1"})) == (
        f"Python 3.9.1, here {here.python}",
        "gone 2, here -",
        "new -, here 1",
        "numpy 1.0, here 2.0",
    )
