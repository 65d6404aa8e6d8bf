"""A job's settings are given by flags of their names, beside those of the engine."""

from __future__ import annotations

import pytest

from runner.options import RunOptions
from runner.registry import load_job

#: What a parameter of requests is set to for a job's own requests; the option of the
#: same name outranks it, for every model or for one.
PARAMETERS = {"temperature", "max_output_tokens"}

#: The engine's flag comes first; the job's setting is given by --set.
SHARED = {
    "evidence-retrieval": {"batch", "seed", *PARAMETERS},
    "paper-investigation": {"temperature"},
    "property-extraction": PARAMETERS,
    "review-benchmark": PARAMETERS,
    "screening": {"seed", *PARAMETERS},
}


@pytest.mark.parametrize("name", SHARED)
def test_hardly_any_setting_has_the_name_of_an_engine_option(name: str) -> None:
    settings = load_job(name).Settings.model_fields
    assert set(settings) & set(RunOptions.model_fields) == SHARED[name]
