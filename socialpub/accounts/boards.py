"""The boards of a Pinterest account and their sections: listed and created for their owner."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from socialpub.accounts import profiles
from socialpub.accounts.queries import ProfileQuery, explain_failures, keep, send
from socialpub.accounts.remedies import Surface
from socialpub.core.errors import InvalidRequest, OperatorError
from socialpub.db.connection import Database
from socialpub.db.models import ProfileRow
from socialpub.db.tables import audit_log
from socialpub.db.tables.audit_log import AuditAction
from socialpub.providers.pinterest import Pinterest
from socialpub.providers.pinterest.boards import SECRET, Board, BoardSection
from socialpub.providers.responses import NoAnswer, Rejected
from socialpub.runtime import Runtime

# Creating has no idempotency key, so after a lost response the board may exist. The call is never repeated: the boards
# of the account are listed before the call, and the next attempt finds the board.

UNKNOWN = "The boards could not be listed."
MAX_NAME_LENGTH = 180
"""The limit of a section (OpenAPI 5.23.0). The limit of a board is not documented."""
MIN_ID_LENGTH = 12
"""A text of this number of digits is the id of a board, not the name of a new board."""


def list_boards(
    rt: Runtime, profile_id: str, with_sections: bool = False
) -> list[tuple[Board, tuple[BoardSection, ...]]]:
    """Return every board, in the network's order, with its sections if they are requested.

    Asks the network (for sections once per board), so do not call on the event loop. Raises NotFound when there is no
    such profile, OperatorError when its network has no boards or does not answer.
    """
    profile, provider = _account(rt, profile_id)
    with explain_failures(rt, profile, UNKNOWN):
        boards = _boards(rt, profile, provider)
        return [(board, _sections(rt, profile, provider, board.id) if with_sections else ()) for board in boards]


def of_profile(rt: Runtime, profile_id: str) -> ProfileQuery[list[Board]]:
    """Return the query for the boards. Raises as `list_boards` does."""
    profile, provider = _account(rt, profile_id)
    return ProfileQuery(profile, "boards", partial(_boards, rt, profile, provider))


def sections_of(rt: Runtime, profile_id: str, board_id: str) -> ProfileQuery[tuple[BoardSection, ...]]:
    """Return the query for the sections of a board. Raises as `list_boards` does."""
    profile, provider = _account(rt, profile_id)
    return ProfileQuery(profile, f"sections of {board_id}", partial(_sections, rt, profile, provider, board_id))


def create_board(
    rt: Runtime, profile_id: str, name: str, *, secret: bool = False, surface: Surface = Surface.SHELL
) -> tuple[Board, bool]:
    """Return a board of this name and whether it is new. `name` may be the id of an existing board.

    Calls the network, so do not call on the event loop. Raises InvalidRequest, NotFound, and OperatorError.
    """
    profile, provider = _account(rt, profile_id)
    name = _check_name(name, "board")
    missing_scopes = provider.auth.how_to_use_secret_boards(profile.scopes) if secret and profile.scopes else None
    if missing_scopes is not None:
        raise OperatorError("The board was not created.", missing_scopes)
    with explain_failures(rt, profile, "The board was not created.", surface):
        boards = _readable_boards(rt, profile, provider)
        for board in boards:
            # A group board of another account may have the same name.
            is_own = board.owner in (None, profile.username)
            if board.id == name or (is_own and _is_same_name(board.name, name)):
                if secret and board.privacy != SECRET:
                    hint = "Choose another name, or make the board secret on Pinterest."
                    raise OperatorError(f"The board “{board.name}” already exists and is not secret.", hint)
                return board, False
        if name.isdigit() and len(name) >= MIN_ID_LENGTH:
            hint = "Use the board's name instead."
            raise OperatorError(f"The account does not have a board with the id {name}.", hint)
        with _explain_lost_response("board"):
            board = send(rt, profile, partial(provider.create_board, name=name, secret=secret))
    keep(rt, of_profile(rt, profile.id), [*boards, board])  # Pinterest's list may show a new board later
    profiles.note_choice_labels(rt, profile.id, "boardId", {board.id: board.name})
    privacy = "secret" if secret else None
    rt.write(_record, AuditAction.PROFILE_BOARD_CREATED, profile, board=board.name, privacy=privacy)
    return board, True


def create_section(
    rt: Runtime, profile_id: str, board: Board, name: str, surface: Surface = Surface.SHELL
) -> tuple[BoardSection, bool]:
    """Return a section of this name in this board and whether it is new. Raises as `create_board` does."""
    profile, provider = _account(rt, profile_id)
    name = _check_name(name, "section")
    with explain_failures(rt, profile, "The section was not created.", surface):
        sections = _sections(rt, profile, provider, board.id)
        for section in sections:
            if _is_same_name(section.name, name):
                return section, False
        with _explain_lost_response("section"):
            section = send(rt, profile, partial(provider.create_section, board_id=board.id, name=name))
    keep(rt, sections_of(rt, profile.id, board.id), (*sections, section))
    profiles.note_choice_labels(rt, profile.id, "boardSectionId", {section.id: section.name})
    rt.write(_record, AuditAction.PROFILE_SECTION_CREATED, profile, board=board.name, section=section.name)
    return section, True


@contextmanager
def _explain_lost_response(noun: str) -> Iterator[None]:
    try:
        yield
    except NoAnswer as error:
        raise OperatorError(
            f"{error.message} The {noun} may have been created.",
            f"Wait a minute, then try again with the same name. If the {noun} exists, no second {noun} is created.",
        ) from error


def _is_same_name(name: str, other: str) -> bool:
    """Return whether two names differ at most in letter case and spaces."""
    return " ".join(name.split()).casefold() == other.casefold()


def _check_name(name: str, field: str) -> str:
    name = " ".join(name.split())
    if not name:
        raise InvalidRequest.at(field, message="must not be empty")
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidRequest.at(field, message=f"may have at most {MAX_NAME_LENGTH} characters and has {len(name)}")
    return name


def _record(_: Runtime, tx: Database, /, action: AuditAction, profile: ProfileRow, **detail: str | None) -> None:
    audit_log.record(tx, action, profile.id, profile.name, provider=profile.provider, **detail)


def _readable_boards(rt: Runtime, profile: ProfileRow, provider: Pinterest) -> list[Board]:
    """Return the boards, or none if this app may write but not read them."""
    try:
        return _boards(rt, profile, provider)
    except Rejected as error:
        if error.status != 403 or error.reauth:
            raise
        return []


def _account(rt: Runtime, profile_id: str) -> tuple[ProfileRow, Pinterest]:
    profile = profiles.get(rt.db, profile_id)
    provider = rt.providers[profile.provider]
    if not isinstance(provider, Pinterest):
        raise OperatorError(f"“{profile.name}” is an account of {provider.label}, which does not support boards.")
    return profile, provider


def _boards(rt: Runtime, profile: ProfileRow, provider: Pinterest) -> list[Board]:
    boards = send(rt, profile, provider.list_boards)
    profiles.note_choice_labels(rt, profile.id, "boardId", {board.id: board.name for board in boards})
    return boards


def _sections(rt: Runtime, profile: ProfileRow, provider: Pinterest, board_id: str) -> tuple[BoardSection, ...]:
    sections = send(rt, profile, lambda http, token: provider.list_sections(http, token, board_id))
    profiles.note_choice_labels(rt, profile.id, "boardSectionId", {section.id: section.name for section in sections})
    return tuple(sections)
