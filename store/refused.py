"""What an endpoint was found not to take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterRefused:
    """An endpoint does not take a parameter of requests to a model.

    Decides what later requests of the run to that endpoint and model contain.
    """

    VERSION: ClassVar[int] = 1

    endpoint: str  #: its address, or the provider's name
    model: str
    name: str  #: field of the request, such as "temperature" or "response_format"
    words: str  #: what the endpoint said
    instead: str | None = None
    """Field or value sent from now on; None: nothing. Of a limit of the output that is
    ignored, the tokens that a call reserves instead."""
    how: str = "refused"
    """"refused": with an error status; "known to be refused": by the model's family,
    without a call; "ignored": accepted, but the replies do not follow it."""

    @property
    def sentence(self) -> str:
        """The fact for people."""
        if self.how == "ignored":
            return f"{self.model}: {self.name} has no effect: {self.words}"
        sent = "not sent" if self.instead is None else f"sent as {self.instead}"
        return f"{self.model}: {self.name} {self.how}, {sent} from now on: {self.words}"
