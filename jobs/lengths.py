"""Whether a request is too long to be asked; never silently cut."""

from __future__ import annotations

from runner.messages import Request
from runner.money.tokens import USUAL_MESSAGE_TOKENS, prompt_tokens, texts_read


def is_longer(request: Request, tokens: int) -> bool:
    """Whether a request has more tokens, by estimate."""
    texts, pieces = texts_read(request)
    # none is shorter than a character, so that most prompts need no counting
    most = sum(map(len, texts)) + USUAL_MESSAGE_TOKENS * pieces
    return most > tokens and prompt_tokens(request) > tokens
