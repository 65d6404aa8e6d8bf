"""Where a collector is."""

from __future__ import annotations

from urllib.parse import urlsplit

from runner.errors import UsageError


def base_of(typed: str) -> str:
    """The address of a collector, to which the paths of its signals are added.

    Raises:
        UsageError: it is no address, or has a password in it.
    """
    try:
        parts = urlsplit(typed)
        is_whole = parts.scheme in {"http", "https"} and bool(parts.hostname)
        is_whole = is_whole and parts.port != 0 and not parts.query
    except ValueError:
        raise _no_address(typed) from None
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "--otlp takes no password: give it in OTEL_EXPORTER_OTLP_HEADERS, such as "
            "'authorization=Basic%20...'."
        )
    if not is_whole:
        raise _no_address(typed)
    return typed.rstrip("/").removesuffix("/v1/traces")


def _no_address(typed: str) -> UsageError:
    return UsageError(
        f"--otlp {typed!r} is no address of a collector, such as http://127.0.0.1:4318."
    )
