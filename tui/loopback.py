"""Listens for browsers of this machine, and recognises requests that are meant for it.

A page of another origin can send requests to this machine, also by a host name of its
choice that resolves to it, so every server checks by which name it is called.
"""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

_HTTP = 80
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def matches_host(netloc: str, host: str, port: int) -> bool:
    """Return whether a request's host is this server.

    >>> matches_host("localhost:8000", "127.0.0.1", 8000)
    True
    >>> matches_host("evil.example:8000", "127.0.0.1", 8000)
    False
    """
    try:
        parts = urlsplit(f"//{netloc}")
        called, at = parts.hostname, parts.port or _HTTP
    except ValueError:
        return False
    names = {host.lower(), *(_LOOPBACK if is_loopback(host) else ())}
    return called in names and at == port


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket on *host*; port 0: any free port.

    Raises:
        OSError: it is unavailable.
    """
    family, kind, proto, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listening = socket.socket(family, kind, proto)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
        # so that the address can be opened at once
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening
