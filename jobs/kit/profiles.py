"""Settings with profiles: named bundles of values, each of which may be replaced.

A value given explicitly wins over the profile's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator

DEFAULT_PROFILE = "siftlog"
"""Default profile of every job."""


class ProfiledSettings(BaseModel):
    """Base of the settings of jobs with profiles.

    A job names its *profiles*, and has a field `profile` that chooses one of them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    profiles: ClassVar[Mapping[str, Mapping[str, Any]]]

    @model_validator(mode="before")
    @classmethod
    def _apply_profile(cls, values: Any) -> Any:  # noqa: ANN401 - pydantic's hook
        if not isinstance(values, Mapping):
            return values
        bundle = cls.profiles.get(str(values.get("profile", DEFAULT_PROFILE)), {})
        return {**bundle, **values}

    @property
    def profile_changes(self) -> tuple[str, ...]:
        """Settings of the profile that an explicit value replaced, `name=value`."""
        settings = dict(self)
        return tuple(
            f"{name}={settings[name]}"
            for name, value in self.profiles[settings["profile"]].items()
            if settings[name] != value
        )
