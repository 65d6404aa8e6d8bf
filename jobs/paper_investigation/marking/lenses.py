"""The settings through which replies are read, and read a second time.

Every open point of the method has two readings. The chosen settings give the result;
each lens here changes one point, so that a reader sees what the choice is worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobs.paper_investigation.marking.judging import RuleChoice
from jobs.paper_investigation.record import Mode
from jobs.paper_investigation.settings import PROFILES, Settings

RULES = ("list_rules", "letter_rules", "p_rules")

MEANING = ("variant_case", "variant_link", *RULES)
"""What a profile says about the meaning of stored answers, not about asking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lens:
    """Settings through which records are read."""

    settings: Settings
    rules: RuleChoice
    stored: Settings  #: for questions whose links cannot be made again

    @classmethod
    def of(cls, settings: Settings) -> Lens:
        """The lens of *settings*."""
        return cls(
            settings=settings,
            rules=RuleChoice.of(settings),
            stored=settings.model_copy(
                update={"variant_link": "whole", "max_questions_per_variant": 0}
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Lenses:
    """The chosen lens, and the others by the suffix their metrics bear."""

    chosen: Lens
    others: Mapping[str, Lens]
    rules: str  #: the one of `others` with the other rules
    profile: str  #: the other profile's name
    other_profile: Lens

    @classmethod
    def of(cls, settings: Settings, mode: Mode) -> Lenses:
        """The lenses of *settings* for work of *mode*."""

        def changed(**values: Any) -> Lens:
            return Lens.of(settings.model_copy(update=values))

        is_robust = all(getattr(settings, name) == "robust" for name in RULES)
        rules = "rules_clinpgx" if is_robust else "rules_robust"
        others = {}
        if mode != "questions":
            if settings.variant_case == "fold":
                others["case_sensitive"] = changed(variant_case="keep")
            else:
                others["case_folded"] = changed(variant_case="fold")
        if mode == "investigate":
            if settings.variant_link == "split":
                others["whole"] = changed(variant_link="whole")
            else:
                others["split"] = changed(variant_link="split")
        others[rules] = changed(
            **dict.fromkeys(RULES, "clinpgx-qa" if is_robust else "robust")
        )
        profile = "clinpgx-qa" if settings.profile == "siftlog" else "siftlog"
        return cls(
            chosen=Lens.of(settings),
            others=others,
            rules=rules,
            profile=profile,
            other_profile=changed(**_meaning(profile)),
        )


def _meaning(profile: str) -> dict[str, Any]:
    defaults = {name: Settings.model_fields[name].default for name in MEANING}
    return {name: PROFILES[profile].get(name, defaults[name]) for name in MEANING}
