"""`socialpub sandbox`: the networks, played on this machine."""

import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

import click

from socialpub.cli.errors import Failure
from socialpub.cli.output import say


@click.command()
@click.option(
    "--listen", default="127.0.0.1:8100", metavar="HOST:PORT", help="Default: 127.0.0.1:8100. Port 0: a free one."
)
@click.option(
    "--journal",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep accounts, tokens and posts there over a restart.",
)
@click.option("--leashed", type=float, hidden=True, help="End within SECONDS when standard input ends.")
def sandbox(listen: str, journal: Path | None, leashed: float | None) -> None:
    """Play the networks, to try everything without credentials."""
    from socialpub.cli.child_process import obey
    from socialpub.sandbox import World, server

    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f"{listen!r} is no HOST:PORT, such as 127.0.0.1:8100.", param_hint="--listen")
    obey(leashed)
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.create_server((host, int(port)), family=family, backlog=512)
    except OSError as error:
        raise Failure(
            f"The sandbox cannot listen on {listen}: {error.strerror}.", "Choose another: --listen 127.0.0.1:0"
        ) from None
    # Whoever reads the address may already tell it to stop.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    bound = sock.getsockname()[1]
    url = f"http://{'[' + host + ']' if ':' in host else host}:{bound}"
    click.echo(f"{url}/")
    say("The sandbox plays X, TikTok and Pinterest. What a reader sees:")
    for name in ("x", "tiktok", "pinterest"):
        say(f"  {url}/{name}/feed")
    say("\nHave socialpub use it with these lines in config.toml, and start it:\n")
    say(provider_lines(url))
    say("Then connect accounts on its consent pages, as on the real ones:  socialpub admin connect-profile x")
    say("TikTok fetches photos from addresses that were proved to it. To have it trust every address:")
    say(f"  curl -d '{{\"all_urls_verified\": true}}' {url}/_control/tiktok/settings")
    say("Ctrl-C ends it.")
    with suppress(KeyboardInterrupt):
        world = World(journal=journal)
        # The real TikTok pulls photos from public https addresses only; an appliance to be tried out has none.
        world.tiktok.public_urls_only = False
        server.run(world, sock)


def provider_lines(url: str) -> str:
    """The part of a configuration that makes socialpub take the sandbox at `url` for the networks."""
    return f"""\
[providers.x]
client_id = "sandbox"
client_secret = "sandbox"
api_url = "{url}/x"
authorize_url = "{url}/x/i/oauth2/authorize"

[providers.tiktok]
client_key = "sandbox"
client_secret = "sandbox"
api_url = "{url}/tiktok"
authorize_url = "{url}/tiktok/v2/auth/authorize/"

[providers.pinterest]
client_id = "sandbox"
client_secret = "sandbox"
api_url = "{url}/pinterest/v5"
authorize_url = "{url}/pinterest/oauth/"
"""
