"""The boards of a Pinterest account and their sections: listed and created for their owner."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from socialpub.accounts import profiles
from socialpub.accounts.questions import Question, ask, explain_failures, remember
from socialpub.accounts.remedies import Surface
from socialpub.core.errors import InvalidRequest, OperatorError
from socialpub.db.connection import Database
from socialpub.db.models import ProfileRow
from socialpub.db.tables import audit_log
from socialpub.db.tables.audit_log import AuditAction
from socialpub.providers.pinterest import Pinterest
from socialpub.providers.pinterest.boards import SECRET, Board, BoardSection
from socialpub.providers.responses import NoAnswer, ProviderError, Rejected
from socialpub.runtime import Runtime

# Creating has no idempotency key, so after a lost answer the board may exist. The call is never repeated: the boards of
# the account are listed before the call, and again after an unclear answer.

UNKNOWN = "The boards could not be listed."
MAX_NAME_LENGTH = 180
"""The limit of a section (OpenAPI 5.23.0). The limit of a board is not documented."""
MIN_ID_LENGTH = 12
"""A text of this number of digits is the id of a board, not the name of a new board."""

Found = TypeVar("Found", Board, BoardSection)


@dataclass(frozen=True, slots=True)
class BoardWithSections:
    board: Board
    sections: tuple[BoardSection, ...] = ()


def list_boards(rt: Runtime, profile_id: str, with_sections: bool = False) -> list[BoardWithSections]:
    """Return every board, in the network's order.

    Asks the network (for sections once per board), so do not call on the event loop. Raises NotFound when there is no
    such profile, OperatorError when its network has no boards or does not answer.
    """
    profile, provider = _account(rt, profile_id)
    with explain_failures(rt, profile, UNKNOWN):
        boards_of_account = _boards(rt, profile, provider)
        if not with_sections:
            return [BoardWithSections(board) for board in boards_of_account]
        return [BoardWithSections(board, _sections(rt, profile, provider, board.id)) for board in boards_of_account]


def of_profile(rt: Runtime, profile_id: str) -> Question[list[Board]]:
    """Return the question for the boards. Raises as `list_boards` does."""
    profile, provider = _account(rt, profile_id)
    return Question(profile, "boards", partial(_boards, rt, profile, provider))


def sections_of(rt: Runtime, profile_id: str, board_id: str) -> Question[tuple[BoardSection, ...]]:
    """Return the question for the sections of a board. Raises as `list_boards` does."""
    profile, provider = _account(rt, profile_id)
    return Question(profile, f"sections of {board_id}", partial(_sections, rt, profile, provider, board_id))


def create_board(
    rt: Runtime, profile_id: str, name: str, *, secret: bool = False, surface: Surface = Surface.SHELL
) -> tuple[Board, bool]:
    """Return a board of this name and whether it is new. `name` may be the id of an existing board.

    Calls the network, so do not call on the event loop. Raises InvalidRequest, NotFound, and OperatorError.
    """
    profile, provider = _account(rt, profile_id)
    name = _checked(name, "board")
    how = provider.auth.how_to_use_secret_boards(profile.scopes) if secret and profile.scopes else None
    if how is not None:
        raise OperatorError("The board was not created.", how)

    def is_it(board: Board) -> bool:
        # A group board of another account may have the same name.
        own = board.owner in (None, profile.username)
        return board.id == name or (own and _is_same_name(board.name, name))

    def known() -> list[Board]:
        return _readable_boards(rt, profile, provider)

    def call() -> Board:
        if name.isdigit() and len(name) >= MIN_ID_LENGTH:
            raise OperatorError(
                f"The account does not have a board with the id {name}.", "Use the board's name instead."
            )
        return ask(rt, profile, partial(provider.create_board, name=name, secret=secret))

    with explain_failures(rt, profile, "The board was not created.", surface):
        board, is_new, before = _create_once("board", is_it, known, call)
    if not is_new and secret and board.privacy != SECRET:
        hint = "Choose another name, or make the board secret on Pinterest."
        raise OperatorError(f"The board “{board.name}” already exists and is not secret.", hint)
    if is_new:
        # Pinterest's list may show a new board later.
        remember(rt, of_profile(rt, profile.id), [*(other for other in before if other.id != board.id), board])
        profiles.note_choice_labels(rt, profile.id, "boardId", {board.id: board.name})
        privacy = "secret" if secret else None
        rt.write(_record, AuditAction.PROFILE_BOARD_CREATED, profile, board=board.name, privacy=privacy)
    return board, is_new


def create_section(
    rt: Runtime, profile_id: str, board: Board, name: str, surface: Surface = Surface.SHELL
) -> tuple[BoardSection, bool]:
    """Return a section of this name in this board and whether it is new. Raises as `create_board` does."""
    profile, provider = _account(rt, profile_id)
    name = _checked(name, "section")

    def is_it(section: BoardSection) -> bool:
        return _is_same_name(section.name, name)

    def known() -> list[BoardSection]:
        return list(_sections(rt, profile, provider, board.id))

    def call() -> BoardSection:
        return ask(rt, profile, partial(provider.create_section, board_id=board.id, name=name))

    with explain_failures(rt, profile, "The section was not created.", surface):
        section, is_new, before = _create_once("section", is_it, known, call)
    if is_new:
        sections = (*(other for other in before if other.id != section.id), section)
        remember(rt, sections_of(rt, profile.id, board.id), sections)
        profiles.note_choice_labels(rt, profile.id, "boardSectionId", {section.id: section.name})
        rt.write(_record, AuditAction.PROFILE_SECTION_CREATED, profile, board=board.name, section=section.name)
    return section, is_new


def _create_once(
    what: str, is_it: Callable[[Found], bool], reload: Callable[[], list[Found]], call: Callable[[], Found]
) -> tuple[Found, bool, list[Found]]:
    """Return the created or found item, whether the item is new, and the items that existed before.

    Raises as `create_board` does.
    """
    before = reload()
    existing = next(filter(is_it, before), None)
    if existing is not None:
        return existing, False, before
    try:
        return call(), True, before
    except Rejected as error:
        # The list may lag, or may not be readable.
        existing = None if error.reauth else next(filter(is_it, reload()), None)
        if existing is None:
            raise
        return existing, False, before
    except NoAnswer as error:
        with contextlib.suppress(ProviderError):
            existing = next(filter(is_it, reload()), None)
        if existing is not None:
            return existing, True, before
        raise OperatorError(
            f"{error.message} The {what} may have been created.",
            f"Wait a minute, then try again with the same name. If the {what} exists, no second {what} is created.",
        ) from error


def _is_same_name(name: str, other: str) -> bool:
    """Return whether two names differ at most in letter case and spaces."""
    return " ".join(name.split()).casefold() == other.casefold()


def _checked(name: str, field: str) -> str:
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
    boards = ask(rt, profile, provider.list_boards)
    profiles.note_choice_labels(rt, profile.id, "boardId", {board.id: board.name for board in boards})
    return boards


def _sections(rt: Runtime, profile: ProfileRow, provider: Pinterest, board_id: str) -> tuple[BoardSection, ...]:
    sections = ask(rt, profile, lambda http, token: provider.list_sections(http, token, board_id))
    profiles.note_choice_labels(rt, profile.id, "boardSectionId", {section.id: section.name for section in sections})
    return tuple(sections)
