"""Virtual keys of LiteLLM's proxy, which otherwise keeps them in a database.

The proxy loads `check` from beside its configuration file, in its own environment.
"""

from __future__ import annotations

from typing import Any, Final

import litellm
from litellm.proxy._types import UserAPIKeyAuth

KEYS: Final[dict[str, dict[str, Any]]] = {
    "sk-free": {},
    "sk-paced": {"rpm_limit": 900},
    "sk-single": {"max_parallel_requests": 1},
    "sk-spent": {"max_budget": 1.0, "spend": 2.0},
}


async def check(request: object, api_key: str) -> UserAPIKeyAuth:  # noqa: ARG001
    """The key's limits; one without credit is refused as the proxy itself does it."""
    key = UserAPIKeyAuth(api_key=api_key, token=api_key, **KEYS[api_key])
    if key.max_budget is not None and key.spend >= key.max_budget:
        # where the proxy compares them, it reads the sum from its database
        raise litellm.BudgetExceededError(
            current_cost=key.spend, max_budget=key.max_budget
        )
    return key
