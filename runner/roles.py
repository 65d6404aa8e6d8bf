"""Assigns models to the roles of a run, from its job and its options."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from runner.added_stages import plans_added_only
from runner.clients.client import is_offline
from runner.job import Job, ModelLimits, Stage
from runner.model_terms import ModelTerms, terms_of
from runner.money.prices import context_tokens, most_output_tokens
from runner.options import BASELINE, RunOptions, options_from, read_toml
from runner.plan import Roles
from runner.workload import Workload
from store.events import RunStarted

OPTIONS: Final[Mapping[str, str]] = {
    "subject": "model",
    "judge": "judge_model",
    "embed": "embed_model",
    "rerank": "rerank_model",
}
"""Option that names the models of each role; subjects may be many."""


def assigned(job: Job, options: RunOptions) -> Roles:
    """Return the models of every role of the job's stages; subjects in any case."""
    role_names = {"subject", *(s.role for s in job.stages if not s.models)}
    models: dict[str, tuple[str, ...]] = {}
    for role, option in OPTIONS.items():
        if role in role_names:
            model = getattr(options, option)
            models[role] = model if isinstance(model, tuple) else (model,)
    return Roles(
        models=models,
        replicates=options.replicates,
        of_stages=tuple(model for stage in job.stages for model in stage.models),
        asks_added_only=plans_added_only(job),
    )


def fixed(models: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return the options that select the *models* of a run, from its first event."""
    return {
        OPTIONS[role]: tuple(of_role) if role == "subject" else of_role[0]
        for role, of_role in models.items()
    }


def recorded_options(config: Path, started: RunStarted) -> RunOptions:
    """Return the options of a run, from its folder's `run.toml` and its first event.

    Raises:
        UsageError: the file is not valid.
    """
    file = read_toml(config)
    plain = {k: v for k, v in file.items() if k not in {"job", "settings"}}
    models = fixed(started.models)
    return options_from({**plain, "replicates": started.replicates, **models})


def terms(work: Workload, options: RunOptions) -> dict[str, ModelTerms]:
    """Return the request terms of every model of a run; defaults for offline ones.

    Raises:
        UsageError: a parameter cannot be disabled for a model.
    """
    return {
        model: terms_of(
            model,
            options.parameters_of(model),
            most_output=most_output_tokens(model),
            settings=work.settings,
        )
        for model in assigned(work.job, options).all_models
        if not is_offline(model)
    }


def fitted(job: Job, settings: BaseModel, options: RunOptions) -> BaseModel:
    """Return the settings of a new run, adapted to the limits of its models.

    Offline models have no limits. The user's output limit of a model replaces the one
    in the price table.
    """
    limits = {
        model: ModelLimits(
            output_tokens=options.parameters_of(model).max_output_tokens
            or most_output_tokens(model),
            context_tokens=context_tokens(model),
        )
        for model in options.model
        if not is_offline(model)
    }
    fitted_settings: BaseModel = job.fit(settings, limits)
    return fitted_settings


def remarks(work: Workload, options: RunOptions) -> list[str]:
    """Return sentences about the roles, to show before anything is sent.

    They name the models if there are several roles. A role without a model is served by
    the offline baseline; a model that no stage uses has no effect. Unreachable stages
    are ignored.
    """
    job = work.job
    reached = _reached(work)
    roles = {"subject", *(stage.role for stage in reached)}
    models = assigned(job, options).models
    assignments = "; ".join(
        f"{role} {', '.join(of)}" for role, of in models.items() if role in roles
    )
    sentences = [f"Models: {assignments}."] if len(roles) > 1 else []
    for role, option in OPTIONS.items():
        stages = [stage.name for stage in reached if stage.role == role]
        is_named = option in options.model_fields_set
        flag = "--" + option.replace("_", "-")
        if role != "subject" and stages and not is_named:
            sentences.append(
                f"{', '.join(stages)}: no {role} model was named, so "
                f"{BASELINE} is used; name one with {flag}."
            )
        if not stages and is_named and getattr(options, option) != BASELINE:
            has_stage = any(stage.role == role for stage in job.stages)
            whose = "this plan" if has_stage else job.name
            sentences.append(f"{flag}: no stage of {whose} uses it.")
    return sentences


def _reached(work: Workload) -> list[Stage]:
    """Return the stages that the plan can reach; added ones have their own models."""
    names = work.job.reaches(work.dataset)
    return [
        stage for stage in work.job.stages if stage.name in names and not stage.models
    ]
