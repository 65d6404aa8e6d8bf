"""The command `serve`: the monitor in a browser."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tui.options import resolve_theme, shared

PORT = 8177
_LAST_PORT = 65_535


@click.command()
@shared
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on."
)
@click.option("--port", default=PORT, show_default=True, help="Port; 0: any free port.")
@click.option(
    "--allow-remote", is_flag=True, help="Allow a --host that other machines can reach."
)
@click.option(
    "--allow-control",
    is_flag=True,
    help="Allow the browser to pause, retry and cancel.",
)
def serve(
    run_name: str | None,
    theme: str | None,
    rate: str | None,
    runs_dir: Path,
    host: str,
    port: int,
    allow_remote: bool,
    allow_control: bool,
) -> int:
    """Show the monitor in a browser.

    By default it is read-only and accepts connections from this machine only. Anyone
    who can reach the port sees all runs, without a password. To watch from another
    machine, forward the port: ssh -L 8177:127.0.0.1:8177 HOST.
    """
    try:
        from tui.browser import BrowserPage
    except ImportError as error:
        raise click.ClickException(
            "The browser needs one more package: install it with "
            "pip install 'siftlog[web]'."
        ) from error
    import shlex

    from store.runs import resolve
    from tui.loopback import is_loopback, listen

    if not 0 <= port <= _LAST_PORT:
        raise click.UsageError(
            f"There is no port {port}: name one from 1 to {_LAST_PORT}, or 0 for any "
            "free port."
        )
    if host in {"", "0.0.0.0", "::"}:  # noqa: S104 - refused
        raise click.UsageError(
            "Name the one address that browsers will use: requests that call the "
            "monitor by another name are refused."
        )
    if not (allow_remote or is_loopback(host)):
        raise click.UsageError(
            f"Everybody who reaches {host} would see all runs, without a password and "
            "in clear text: add --allow-remote if that is meant, or keep the default "
            "and forward the port with ssh -L."
        )
    resolve_theme(theme)
    # the typed command, as `watch`
    words = [sys.executable, str(Path(sys.argv[0]).absolute()), "watch"]
    words += ["--runs-dir", str(runs_dir)]
    words += [] if run_name is None else [resolve(runs_dir, run_name).run_id]
    words += [] if theme is None else ["--theme", theme]
    words += [] if rate is None else ["--rate", rate]
    words += [] if allow_control else ["--read-only"]
    try:
        listening = listen(host, port)
    except OSError as error:
        raise click.ClickException(
            f"{host} port {port} cannot be listened on ({error.strerror}): choose "
            "another with --port, or 0 for any that is free."
        ) from error
    mode = "with control of the runs" if allow_control else "read-only"

    def say(url: str) -> None:
        click.echo(f"{url}  ({mode}; end with ctrl-c)")
        sys.stdout.flush()

    BrowserPage(shlex.join(words), listening, host, say).run()
    return 0
