"""`socialpub sandbox`: simulated networks on this machine."""

import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

import click

from socialpub.cli.output import CommandError, print_line, print_note
from socialpub.cli.run import end_with_parent, end_with_parent_option
from socialpub.core import commands
from socialpub.core.locks import FileLock
from socialpub.sandbox import World
from socialpub.sandbox.app import run

JOURNAL = "sandbox.jsonl"


@click.command()
@click.option(
    "--listen", default="127.0.0.1:8100", metavar="HOST:PORT", help="Default: 127.0.0.1:8100. Port 0: any free port."
)
@click.option(
    "--journal",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help=f"Store accounts, tokens and posts in FILE for the next start. Default: {JOURNAL} in this folder.",
)
@click.option("--no-journal", is_flag=True, help="Store nothing for the next start.")
@click.option("--all-networks", is_flag=True, help="Also show the networks beyond the specification.")
@click.option("--print-config", is_flag=True, help="Only print the lines for config.toml that use the sandbox.")
@end_with_parent_option
def sandbox(
    listen: str,
    journal: Path | None,
    no_journal: bool,
    all_networks: bool,
    print_config: bool,
    stop_seconds: float | None,
) -> None:
    """Run simulated networks, so that you can try socialpub without credentials."""
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f"{listen!r} is not HOST:PORT, such as 127.0.0.1:8100.", param_hint="--listen")
    if journal and no_journal:
        raise click.UsageError("--journal and --no-journal cannot be combined.")
    if print_config:
        if not int(port):
            raise click.UsageError("--print-config needs the port of the sandbox: --listen HOST:PORT")
        for line in provider_lines(_url(host, int(port)), all_networks=all_networks).splitlines():
            print_line(line)
        return
    end_with_parent(stop_seconds)
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.create_server((host, int(port)), family=family, backlog=512)
    except OSError as error:
        raise CommandError(
            f"The sandbox cannot listen on {listen}: {error.strerror}.", "Choose another address: --listen 127.0.0.1:0"
        ) from None
    lock = None if no_journal else _hold_journal(journal)
    # Before the URL is printed, because its reader may stop the process at once.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    url = _url(host, sock.getsockname()[1])
    print_line(f"{url}/")
    with suppress(KeyboardInterrupt):
        world = World(journal=lock.path if lock else None)
        world.shows_bluesky = all_networks
        _explain(url, lock, world)
        run(world, sock)


def _url(host: str, port: int) -> str:
    return f"http://{'[' + host + ']' if ':' in host else host}:{port}"


def _hold_journal(chosen: Path | None) -> FileLock:
    """Lock the chosen journal against other sandboxes, or the first free journal of this folder."""
    path, number = chosen or Path(JOURNAL), 1
    while True:
        lock = FileLock(path.absolute())
        try:
            if lock.try_acquire():
                return lock
        except OSError as error:
            raise CommandError(
                f"The sandbox cannot write {lock.path}: {error.strerror}.",
                "Choose another file (--journal FILE), or store nothing: --no-journal",
            ) from None
        if chosen:
            raise CommandError(f"Another sandbox uses {lock.path}.", "Choose another file: --journal FILE")
        number += 1
        path = Path(f"sandbox-{number}.jsonl")


def _explain(url: str, journal: FileLock | None, world: World) -> None:
    print_note(
        f"The sandbox simulates {network_labels(all_networks=world.shows_bluesky)}. It shows published posts at:"
    )
    for network in world.shown_networks:
        print_note(f"  {url}/{network.name}/feed")
    print_note()
    if journal:
        print_note(f"Accounts, tokens and posts are stored for the next start in {journal.path}")
    else:
        print_note("Accounts, tokens and posts are removed at the end.")
    print_note()
    print_note("To use the sandbox, put these lines into config.toml and start socialpub:")
    print_note()
    for line in provider_lines(url, all_networks=world.shows_bluesky).splitlines():
        print_note(line)
    print_note()
    print_note("Then connect accounts on the sandbox's consent pages, as on the real pages:")
    print_note(f"  {commands.line('admin', 'connect-profile', 'x')}")
    if world.shows_bluesky:
        print_note("Bluesky has no consent page. Enter one of these app passwords:")
        for account in world.bluesky.accounts.values():
            if account.app_passwords:
                line = commands.line("admin", "connect-profile", "bluesky", "--handle", account.username)
                print_note(f"  {line}   # {account.app_password}")
    print_note("TikTok fetches photos only from verified URLs. To treat all URLs as verified:")
    print_note(f"  curl -d '{{\"all_urls_verified\": true}}' {url}/_control/tiktok/settings")
    print_note("Press Ctrl-C to stop the sandbox.")


def network_labels(*, all_networks: bool) -> str:
    return "X, TikTok, Pinterest and Bluesky" if all_networks else "X, TikTok and Pinterest"


def provider_lines(url: str, *, all_networks: bool = False) -> str:
    """Return the lines of a configuration for the sandbox at `url`."""
    bluesky = f"""
[providers.bluesky]
enabled = true
service = "{url}/bluesky"
plc_url = "{url}/bluesky/plc"
"""
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
{bluesky if all_networks else ""}"""
