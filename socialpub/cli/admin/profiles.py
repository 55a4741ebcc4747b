"""The commands for profiles, for connecting their accounts, and for the boards of Pinterest."""

import json
import sys
from collections.abc import Sequence
from typing import TextIO

import click

from socialpub.accounts import boards, connect, consents, profiles, redirects, remedies, tokens, upkeep
from socialpub.accounts.api_keys import OWNER
from socialpub.accounts.connect import Connected, UnconfirmedServer
from socialpub.accounts.redirects import WrongAddress
from socialpub.accounts.remedies import Surface
from socialpub.cli.admin import ID
from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.output import (
    EXEC_TERMINAL,
    CommandError,
    ask,
    ask_hidden,
    ask_to_continue,
    format_time,
    print_json,
    print_line,
    print_note,
    print_table,
    spinner,
)
from socialpub.core import commands
from socialpub.core.clock import parse
from socialpub.core.errors import OperatorError
from socialpub.db.models import ConsentRow, ProfileRow
from socialpub.db.queries import api_json
from socialpub.db.tables import profile_rows
from socialpub.ops.doctor import configuration, reachability
from socialpub.ops.doctor.reachability import Answering
from socialpub.providers.auth import SignIn, SignInField
from socialpub.providers.base import Provider, Withdrawn
from socialpub.providers.pinterest.boards import Board, BoardSection
from socialpub.providers.responses import ProviderError
from socialpub.runtime import Runtime


def known_provider(rt: Runtime, name: str) -> Provider:
    if name not in rt.providers:
        raise click.BadParameter(f"{name!r} is not one of {', '.join(rt.providers)}.", param_hint="PROVIDER")
    return rt.providers[name]


# --- connecting -------------------------------------------------------------------------------------------------------

POLL_SECONDS = 0.5
MAX_PASTES = 5
NOTHING_CONNECTED = "Nothing was connected, and the URL of the consent page is no longer valid."


@click.command()
@click.argument("provider_name", metavar="PROVIDER")
@click.option("--name", metavar="LABEL", help="The name of the profile. Default: the account's own name.")
@click.option(
    "--profile", "profile_id", type=ID, metavar="ID", help="Reconnect this profile, and do not accept other accounts."
)
@click.option("--paste", is_flag=True, help="For a server without a browser: paste your browser's final URL.")
@click.option("--handle", metavar="NAME", help="For a network with app passwords: the handle of the account.")
@click.option(
    "--password-file",
    type=click.File("r"),
    metavar="FILE|-",
    help="Read the app password from a file or from standard input. Default: ask on the terminal.",
)
@click.option(
    "--server",
    metavar="HOST",
    help="For a network with app passwords: send the password only to this server. Default: ask on the terminal before "
    "the password is sent to another server than that of the configuration.",
)
@pass_command_context
def connect_profile(
    context: CommandContext,
    provider_name: str,
    name: str | None,
    profile_id: str | None,
    paste: bool,
    handle: str | None,
    password_file: TextIO | None,
    server: str | None,
) -> None:
    """Connect an account, and print the profile's id.

    The command shows the URL of the network's consent page, and waits until your browser returns from that page.
    This needs a running `socialpub serve` (or `web`). With --paste, you copy the final URL by hand. If the account is
    already connected, its profile gets new tokens.

    A network with app passwords has no consent page. The command asks for the app password, signs in once, and does not
    store the password.
    """
    with context.open() as rt:
        provider = known_provider(rt, provider_name)
        _check_configuration_in_use(rt, provider_name)
        if isinstance(provider.auth, SignIn):
            if paste:
                raise click.UsageError(f"{provider.label} has no consent page, so --paste has no effect.")
            print_connected(rt, _sign_in(rt, provider, provider.auth, name, profile_id, handle, password_file, server))
            return
        fields = {"--handle": handle, "--password-file": password_file, "--server": server}
        if option := next((option for option, value in fields.items() if value is not None), None):
            raise click.UsageError(
                f"{provider.label} asks for your consent on its own page, so {option} has no effect."
            )
        if not paste:
            _check_redirect(rt, provider_name)
        begun, url = consents.begin(rt, provider_name, name, profile_id)
        _explain(rt, begun, url)
        try:
            finished = _paste(rt, begun) if paste else _wait(rt, begun)
        except KeyboardInterrupt:
            raise CommandError(NOTHING_CONNECTED) from None
        finally:
            rt.write(consents.cancel, begun.id)  # no effect after its end
        print_connected(rt, finished)


@click.command()
@click.argument("profile_id", metavar="ID", type=ID)
@pass_command_context
def refresh_profile(context: CommandContext, profile_id: str) -> None:
    """Renew the tokens of a profile, and fetch its account data (handle, name, picture and permissions).

    This is rarely needed: the worker renews tokens before they expire, and fetches the account data once a week.
    """
    with context.open() as rt:
        profile = profiles.get(rt.db, profile_id)
        provider = rt.providers[profile.provider]
        try:
            if profile.refresh_token is not None:
                with spinner(f"Asking {provider.label} for new tokens"):
                    tokens.renew(rt, profile_id)
            with spinner(f"Asking {provider.label} for the account data"):
                changes = upkeep.fetch_account_data(rt, profile_id)
            for sentence in changes or ["The account data has not changed."]:
                print_note(sentence)
            if profile.refresh_token is None:
                tokens.renew(rt, profile_id)  # raises with a hint
        except Withdrawn:
            raise CommandError(
                f"The profile “{profile.name}” is disconnected.",
                f"To connect the account as a new profile, {remedies.connect(profile.provider)}.",
            ) from None
        except tokens.Paused as paused:
            raise CommandError(paused.message, f"To continue, {remedies.resume()}.") from None
        except ProviderError as error:
            raise CommandError(error.message, remedies.after_failure(provider, error)) from None
        profile = profiles.get(rt.db, profile_id)
    until = f", valid until {format_time(profile.access_expires_at)}" if profile.access_expires_at else ""
    print_note(f"The profile “{profile.name}” has a new access token{until}.")
    if profile.refresh_expires_at:
        print_note(f"Until {format_time(profile.refresh_expires_at)}, socialpub can renew the token without you.")


def _check_configuration_in_use(rt: Runtime, provider_name: str) -> None:
    """Raise CommandError if the web server, which requests the tokens, runs with another configuration."""
    changed = configuration.find_changed_keys(rt).get("web", [])
    used = [key for key in changed if key == "base_url" or key.startswith(f"providers.{provider_name}.")]
    if used:
        raise CommandError(
            f"{rt.settings.config_file} has changed. The web server still has earlier values of {', '.join(used)}.",
            configuration.restart_remedy(),
        )


# --- signing in with fields -------------------------------------------------------------------------------------------

MAX_PASSWORD_CHARACTERS = 1000
"""The characters that are read of a password file. They are more than a password may have."""


def _sign_in(
    rt: Runtime,
    provider: Provider,
    auth: SignIn,
    name: str | None,
    profile_id: str | None,
    handle: str | None,
    password_file: TextIO | None,
    server: str | None,
) -> Connected:
    """Sign in with the options, and ask on the terminal for values that the options do not give."""
    profile = connect.check_sign_in(rt, provider, profile_id, Surface.SHELL)
    if handle is None and profile is not None:
        handle = profile.username
    entered = {"handle": handle, "password": _read_password(password_file)}
    values = {field.name: entered.get(field.name) or _ask_value(provider, field) for field in auth.fields}
    while True:
        try:
            with spinner(f"Signing in at {provider.label}"):
                return connect.sign_in(rt, provider.name, values, name, profile_id, server=server)
        except UnconfirmedServer as unconfirmed:
            if server is not None or not sys.stdin.isatty():
                raise
            ask_to_continue(f"{unconfirmed.message} Send it there?")
            server = unconfirmed.server


def _read_password(file: TextIO | None) -> str | None:
    """Return the password in the file, or None if the terminal is to ask."""
    if file is None or file.isatty():
        return None
    try:
        password = file.read(MAX_PASSWORD_CHARACTERS).strip()
    except UnicodeDecodeError:
        password = ""
    if not password:
        raise CommandError("The password file does not contain a password.", "Write only the app password into it.")
    return password


def _ask_value(provider: Provider, field: SignInField) -> str:
    """Ask on the terminal, without echo for a secret."""
    if not sys.stdin.isatty():
        option = "--password-file FILE" if field.secret else f"--{field.name} NAME"
        raise CommandError(f"{provider.label} needs the value “{field.label}”.", f"Add {option}, or use a terminal.")
    if field.hint:
        print_note(field.hint)
    return ask_hidden(field.label) if field.secret else ask(field.label)


# --- consent, step by step --------------------------------------------------------------------------------------------


def _check_redirect(rt: Runtime, provider_name: str) -> None:
    """Raise CommandError if the browser would not return to our web server."""
    base_url, label = rt.settings.base_url, rt.providers[provider_name].label
    if not redirects.returns_here(rt.settings, provider_name):
        address = rt.settings.redirect_url(provider_name)
        raise CommandError(
            f"{label} sends your browser to {address}, which is not a URL of this appliance.",
            "To connect by hand, add --paste.",
        )
    who, how = reachability.find_answering(rt, base_url)
    if who is Answering.OTHER:
        raise CommandError(
            f"{label} would send your browser to {base_url}, which does not lead to this appliance: {how}.",
            "Correct base_url or its proxy, and try again. To connect by hand, add --paste.",
        )
    if who is Answering.NOTHING and not reachability.answers_here(rt):
        raise CommandError(
            f"{label} would send your browser to {base_url}, but nothing answers at that URL.",
            f"{commands.start()}, and try again. To connect by hand, add --paste.",
        )


def _explain(rt: Runtime, begun: ConsentRow, url: str) -> None:
    provider = rt.providers[begun.provider]
    rule = redirects.check(rt.settings, provider)
    if rule is not None and rule.remedy is not None:
        print_note(f"{rule.sentence} {rule.remedy}")
        print_note()
    print_note("Open this page in a browser and give your consent:")
    print_note()
    print_note(f"  {url}")
    print_note()
    print_note(f"The page is valid until {parse(begun.expires_at):%H:%M} UTC and works once.")
    app = f"{rule.app_kind} app" if rule and rule.app_kind else "app"
    print_note(f"Your {app} at {provider.label} must have exactly this redirect address:")
    print_note(f"  {begun.redirect_uri}")


def _wait(rt: Runtime, begun: ConsentRow) -> Connected:
    """Wait until the browser has returned to the web process."""
    with spinner("Waiting for your browser to return (Ctrl-C to cancel)"):
        while (finished := _outcome(rt, begun)) is None:
            rt.stopping.wait(POLL_SECONDS)
    return finished


def _paste(rt: Runtime, begun: ConsentRow) -> Connected:
    """Read the URL, up to five times. The web process may finish first."""
    print_note("Then paste the final URL of the browser, even if the browser shows an error:")
    for _ in range(MAX_PASTES):
        line = sys.stdin.readline()
        finished = _outcome(rt, begun)
        if finished is not None:
            return finished
        if not line:
            break
        if not line.strip():
            continue
        try:
            query = redirects.read_pasted_address(line, begun.redirect_uri)
        except WrongAddress as error:
            print_note(f"{error.message} {error.hint or ''}")
            continue
        with spinner("Asking for the account"):
            return consents.finish(rt, begun.provider, query, begun.id)
    again = commands.line("admin", "connect-profile", begun.provider, "--paste")
    raise CommandError(f"No URL was pasted. {NOTHING_CONNECTED}", f"Run `{again}` in a terminal{EXEC_TERMINAL}.")


def _outcome(rt: Runtime, begun: ConsentRow) -> Connected | None:
    """Return the outcome, or None. Raise CommandError for a failure."""
    outcome = consents.load_outcome(rt, begun.id)
    if isinstance(outcome, OperatorError):
        raise CommandError(outcome.message, outcome.hint)
    return outcome


# --- profiles ---------------------------------------------------------------------------------------------------------


@click.command()
@click.argument("provider_name", metavar="PROVIDER")
@click.option("--name", metavar="LABEL", help="The name of the profile. Default: the account's own name.")
@click.option(
    "--credentials", "file", type=click.File("r"), default="-", metavar="FILE|-", help="Default: standard input."
)
@pass_command_context
def import_profile(context: CommandContext, provider_name: str, name: str | None, file: TextIO) -> None:
    """Connect an account with existing tokens, and print the profile's id.

    The credentials are JSON: {"accessToken", "refreshToken"?, "expiresAt"?, "refreshExpiresAt"?, "scope"?}. If the
    account is already connected, its profile gets new tokens.
    """
    with context.open() as rt:
        provider = known_provider(rt, provider_name)
        if file.isatty():
            print_note("Paste the credentials (JSON), then press Ctrl-D:")
        credentials = connect.read_credentials(_text(file))
        with spinner(f"Asking {provider.label} for the account"):
            imported = connect.import_account(rt, provider_name, credentials, name)
        print_connected(rt, imported)


def _text(file: TextIO) -> str:
    try:
        return file.read()
    except UnicodeDecodeError:
        raise CommandError("The credentials are not UTF-8 text.", "Save them as JSON in UTF-8.") from None


def print_connected(rt: Runtime, outcome: connect.Connected) -> None:
    print_line(outcome.profile_id)
    profile = profile_rows.get(rt.db, outcome.profile_id)
    account = f"@{profile.username}" if profile.username else profile.account_id
    done = "has new tokens and is active" if outcome.revived else "is connected"
    print_note(f"The {rt.providers[profile.provider].label} account {account} {done} as “{profile.name}”.")
    for sentence in outcome.missing:
        print_note(f"Note: {sentence}")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@pass_command_context
def list_profiles(context: CommandContext, as_json: bool) -> None:
    """List the connected accounts."""
    with context.open() as rt:
        profiles_with_warnings = [(row, upkeep.describe_warning(row, rt.now())) for row in profile_rows.list_all(rt.db)]
        shapes = json.loads(api_json.profiles(rt.db, OWNER))
    if as_json:
        print_json([_profile_shape(shape, *more) for shape, more in zip(shapes, profiles_with_warnings, strict=True)])
        return
    rows = [
        (
            profile.id,
            profile.name,
            profile.provider,
            f"@{profile.username}" if profile.username else "",
            profile.status,
            format_time(profile.expires_at),
            str(profile.posts_count),
            _profile_notes(profile, warning),
        )
        for profile, warning in profiles_with_warnings
    ]
    columns = ("ID", "Name", "Network", "Account", "Status", "Expires", "Posts", "Notes")
    empty = f"No accounts yet. Connect an account with `{commands.line('admin', 'connect-profile', 'PROVIDER')}`."
    print_table(columns, rows, empty)


@click.command()
@click.argument("profile_id", metavar="ID", type=ID)
@click.argument("name")
@pass_command_context
def rename_profile(context: CommandContext, profile_id: str, name: str) -> None:
    """Change the name of a profile to NAME."""
    with context.open() as rt:
        rt.write(profiles.rename, profile_id, name)
    print_note(f"The profile {profile_id} is now called “{name.strip()}”.")


@click.command()
@click.argument("profile_id", metavar="ID", type=ID)
@pass_command_context
def disconnect_profile(context: CommandContext, profile_id: str) -> None:
    """End the connection to an account. Its scheduled posts then fail, and the error message gives the reason."""
    with context.open() as rt:
        rt.write(profiles.disconnect, profile_id)
        auth = rt.providers[profiles.get(rt.db, profile_id).provider].auth
    entry = "the app password" if isinstance(auth, SignIn) else "the app"
    print_note("The profile is disconnected. Nothing more is sent with its tokens.")
    print_note("The worker revokes the tokens if the network allows it, and erases them within an hour.")
    print_note(f"The account's settings on the network may still list {entry}. You can remove {entry} there.")


@click.command()
@click.argument("profile_id", metavar="ID", type=ID)
@click.argument("pairs", metavar="[KEY=VALUE...]", nargs=-1)
@pass_command_context
def set_options(context: CommandContext, profile_id: str, pairs: tuple[str, ...]) -> None:
    """Set default options for the posts of this profile. `KEY=` removes an option.

    A post's own options take precedence. The command prints the stored options as JSON. Without KEY=VALUE, it changes
    nothing. The options apply to posts that are accepted from now on.
    """
    options = profiles.read_pairs(pairs)
    with context.open() as rt:
        if options:
            stored = rt.write(profiles.set_options, profile_id, options)
        else:
            stored = dict(profiles.get(rt.db, profile_id).options)
    print_json(stored, indent=None)


def _profile_shape(shape: dict[str, object], profile: ProfileRow, warning: str | None) -> dict[str, object]:
    """Add the stored options, the reason and the warning to the API's fields."""
    more = {"reason": profile.reason, "warning": warning}
    values = {name: value for name, value in more.items() if value is not None}
    return {**shape, **values, "options": profile.options}


def _profile_notes(profile: ProfileRow, warning: str | None) -> str:
    notes = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in profile.options.items()]
    return "; ".join([warning, *notes] if warning else notes)


# --- boards of Pinterest ----------------------------------------------------------------------------------------------


@click.command()
@click.argument("profile_id", metavar="ID", type=ID)
@click.option("--sections", is_flag=True, help="Also list the sections.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@pass_command_context
def list_boards(context: CommandContext, profile_id: str, sections: bool, as_json: bool) -> None:
    """List the boards of a Pinterest profile."""
    with context.open() as rt, spinner("Asking for the boards"):
        boards_of_account = boards.list_boards(rt, profile_id, with_sections=sections)
    if as_json:
        print_json(
            [_board_shape(board, its_sections if sections else None) for board, its_sections in boards_of_account]
        )
        return
    rows = [row for board, its_sections in boards_of_account for row in _board_rows(board, its_sections)]
    create = commands.line("admin", "create-board", profile_id, "NAME")
    empty = f"This account does not have a board yet. Create a board: `{create}`"
    print_table(("ID", "Name", "Section", "Privacy", "Pins"), rows, empty)
    if rows:
        line = commands.line("admin", "set-options", profile_id, "boardId=ID")
        print_note(f"To set the default board of this profile: `{line}`")


def _board_shape(board: Board, sections: Sequence[BoardSection] | None) -> dict[str, object]:
    values = {"id": board.id, "name": board.name, "privacy": board.privacy, "pinCount": board.pin_count}
    shape: dict[str, object] = {key: value for key, value in values.items() if value is not None}
    if sections is not None:
        shape["sections"] = [{"id": section.id, "name": section.name} for section in sections]
    return shape


def _board_rows(board: Board, sections: Sequence[BoardSection]) -> list[tuple[str, ...]]:
    pins = "" if board.pin_count is None else str(board.pin_count)
    first = (board.id, board.name, "", (board.privacy or "").lower(), pins)
    return [first, *((section.id, board.name, section.name, "", "") for section in sections)]


@click.command()
@click.argument("profile_id", metavar="ID", type=ID)
@click.argument("name")
@click.option("--secret", is_flag=True, help="Only the account itself can see the board.")
@click.option("--section", "sections", metavar="NAME", multiple=True, help="Create a section of the board. Repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print the board and its sections as JSON.")
@pass_command_context
def create_board(
    context: CommandContext, profile_id: str, name: str, secret: bool, sections: tuple[str, ...], as_json: bool
) -> None:
    """Create the board NAME of a Pinterest profile, and print its id.

    The command uses an existing board or section, so it creates nothing twice. To add sections to a board, give its
    name or its id.
    """
    with context.open() as rt, spinner("Creating the board"):
        board, is_new = boards.create_board(rt, profile_id, name, secret=secret)
        created = [boards.create_section(rt, profile_id, board, title) for title in sections]
    if as_json:
        listed = [{"id": section.id, "name": section.name, "created": new} for section, new in created]
        shape = _board_shape(board, None)
        print_json({**shape, "created": is_new, "sections": listed})
        return
    print_line(board.id)
    print_note(f"The board “{board.name}” {_done(is_new)}.")
    for section, new in created:
        print_note(f"The section “{section.name}” ({section.id}) {_done(new)}.")


def _done(is_new: bool) -> str:
    return "is created" if is_new else "already exists"
