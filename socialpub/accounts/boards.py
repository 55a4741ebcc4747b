"""The boards of a profile: its owner chooses from them for pins, and creates more.

Creating has no idempotency key, so after a lost answer the board may exist. The call is never repeated: the account is
asked for a board of that name before the call, and again when its answer is not clear.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from socialpub.accounts import profiles, questions
from socialpub.accounts.hints import Surface
from socialpub.core.errors import InvalidRequest, OperatorError
from socialpub.db.connection import Tx
from socialpub.db.tables import audit_log
from socialpub.db.tables.audit_log import AuditAction
from socialpub.db.tables.profile_rows import Profile
from socialpub.providers.errors import NoAnswer, ProviderError, Rejected
from socialpub.providers.pinterest import Pinterest
from socialpub.providers.pinterest.boards import SECRET, Board, BoardSection
from socialpub.runtime import Runtime

FAILURE = "The boards could not be listed."
MAX_NAME_LENGTH = 180
"""Of a section (OpenAPI 5.23.0). That of a board is not documented."""
MIN_ID_LENGTH = 12
"""Ours: a text of this number of digits is the id of a board and not the name of a new one."""

T = TypeVar("T", Board, BoardSection)


@dataclass(frozen=True, slots=True)
class BoardWithSections:
    board: Board
    sections: tuple[BoardSection, ...] = ()
    """Empty also when they were not asked for."""


@dataclass(frozen=True, slots=True)
class CreatedBoard:
    board: Board
    is_new: bool
    """False: the account had it already."""


@dataclass(frozen=True, slots=True)
class CreatedSection:
    section: BoardSection
    is_new: bool


def list_all(rt: Runtime, profile_id: str, with_sections: bool = False) -> list[BoardWithSections]:
    """Return every board, in the network's order.

    Asks the network, so not from the event loop; for sections once more per board. Raises NotFound when there is no
    such profile, OperatorError when its network has no boards or does not answer.
    """
    profile, provider = _account(rt, profile_id)
    with questions.explain_failures(rt, profile, FAILURE):
        found = _boards(rt, profile, provider)
        if not with_sections:
            return [BoardWithSections(board) for board in found]
        return [BoardWithSections(board, _sections(rt, profile, provider, board.id)) for board in found]


def list_lately(rt: Runtime, profile_id: str, chosen: str | None, surface: Surface) -> list[BoardWithSections]:
    """Return every board, the chosen one with its sections; kept for a minute, for a form that is shown again.

    Raises as `list_all` does.
    """
    profile, provider = _account(rt, profile_id)

    def boards() -> list[Board]:
        with questions.explain_failures(rt, profile, FAILURE, surface):
            return _boards(rt, profile, provider)

    def sections() -> tuple[BoardSection, ...]:
        with questions.explain_failures(rt, profile, FAILURE, surface):
            return _sections(rt, profile, provider, str(chosen))

    found = questions.remembered(rt, profile, _boards_for(surface), boards)
    if chosen not in {board.id for board in found}:
        return [BoardWithSections(board) for board in found]
    of_chosen = questions.remembered(rt, profile, _sections_for(str(chosen), surface), sections)
    return [BoardWithSections(board, of_chosen if board.id == chosen else ()) for board in found]


def create_board(
    rt: Runtime, profile_id: str, name: str, *, secret: bool = False, surface: Surface = Surface.SHELL
) -> CreatedBoard:
    """Create a board of this name, or find the one that the account has already. `name` may be the id of a board.

    Calls the network, so not from the event loop. Raises InvalidRequest, NotFound, and OperatorError.
    """
    profile, provider = _account(rt, profile_id)
    name = _checked(name, "board")
    how = provider.how_to_use_secret_boards(profile.scopes) if secret and profile.scopes else None
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
            raise OperatorError(f"The account has no board with the id {name}.", "Give the board's name instead.")
        return questions.ask(rt, profile, partial(provider.create_board, name=name, secret=secret))

    with questions.explain_failures(rt, profile, "The board was not created.", surface):
        board, is_new, before = _create("board", is_it, known, call)
    if not is_new and secret and board.privacy != SECRET:
        hint = "Choose another name, or make the board secret on Pinterest."
        raise OperatorError(f"The board “{board.name}” exists already and is not secret.", hint)
    if is_new:
        # Pinterest's list may show a new board later.
        boards = [*(one for one in before if one.id != board.id), board]
        questions.remember(rt, profiles.get(rt.reader, profile.id), _boards_for(surface), boards)
        profiles.note_choice_labels(rt, profile.id, "boardId", {board.id: board.name})
        privacy = "secret" if secret else None
        rt.write(_note, AuditAction.PROFILE_BOARD_CREATED, profile, board=board.name, privacy=privacy)
    return CreatedBoard(board, is_new)


def create_section(
    rt: Runtime, profile_id: str, board: Board, name: str, surface: Surface = Surface.SHELL
) -> CreatedSection:
    """Create a section of this board, or find the one that it has already. Raises as `create_board` does."""
    profile, provider = _account(rt, profile_id)
    name = _checked(name, "section")

    def is_it(section: BoardSection) -> bool:
        return _is_same_name(section.name, name)

    def known() -> list[BoardSection]:
        return list(_sections(rt, profile, provider, board.id))

    def call() -> BoardSection:
        return questions.ask(rt, profile, partial(provider.create_section, board_id=board.id, name=name))

    with questions.explain_failures(rt, profile, "The section was not created.", surface):
        section, is_new, before = _create("section", is_it, known, call)
    if is_new:
        sections = (*(one for one in before if one.id != section.id), section)
        questions.remember(rt, profiles.get(rt.reader, profile.id), _sections_for(board.id, surface), sections)
        profiles.note_choice_labels(rt, profile.id, "boardSectionId", {section.id: section.name})
        rt.write(_note, AuditAction.PROFILE_SECTION_CREATED, profile, board=board.name, section=section.name)
    return CreatedSection(section, is_new)


def _create(
    what: str, is_it: Callable[[T], bool], known: Callable[[], list[T]], call: Callable[[], T]
) -> tuple[T, bool, list[T]]:
    """Return what was created or found, whether it is new, and what existed before. Raises as `create_board` does."""
    before = known()
    found = next(filter(is_it, before), None)
    if found is not None:
        return found, False, before
    try:
        return call(), True, before
    except Rejected as error:
        # The list may lag, or may not be readable.
        found = None if error.reauth else next(filter(is_it, known()), None)
        if found is None:
            raise
        return found, False, before
    except NoAnswer as error:
        with contextlib.suppress(ProviderError):
            found = next(filter(is_it, known()), None)
        if found is not None:
            return found, True, before
        raise OperatorError(
            f"{error.message} The {what} may have been created.",
            f"Wait a minute, then try again with the same name: if the {what} is there, no second one is created.",
        ) from error


def _is_same_name(one: str, other: str) -> bool:
    """Return whether two names differ at most in letter case and spaces."""
    return " ".join(one.split()).casefold() == other.casefold()


def _checked(name: str, field: str) -> str:
    name = " ".join(name.split())
    if not name:
        raise InvalidRequest.at(field, message="must not be empty")
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidRequest.at(field, message=f"may have at most {MAX_NAME_LENGTH} characters and has {len(name)}")
    return name


def _note(_: Runtime, tx: Tx, /, action: AuditAction, profile: Profile, **detail: str | None) -> None:
    audit_log.record(tx, action, profile.id, profile.name, provider=profile.provider, **detail)


def _boards_for(surface: Surface) -> str:
    return f"boards for the {surface}"


def _sections_for(board_id: str, surface: Surface) -> str:
    return f"sections of {board_id} for the {surface}"


def _readable_boards(rt: Runtime, profile: Profile, provider: Pinterest) -> list[Board]:
    """Return the boards; none where this app may write and not read."""
    try:
        return _boards(rt, profile, provider)
    except Rejected as error:
        if error.status != 403 or error.reauth:
            raise
        return []


def _account(rt: Runtime, profile_id: str) -> tuple[Profile, Pinterest]:
    profile = profiles.get(rt.reader, profile_id)
    provider = rt.providers[profile.provider]
    if not isinstance(provider, Pinterest):
        raise OperatorError(f"“{profile.name}” is an account of {provider.label}, which has no boards.")
    return profile, provider


def _boards(rt: Runtime, profile: Profile, provider: Pinterest) -> list[Board]:
    found = questions.ask(rt, profile, provider.list_boards)
    profiles.note_choice_labels(rt, profile.id, "boardId", {board.id: board.name for board in found})
    return found


def _sections(rt: Runtime, profile: Profile, provider: Pinterest, board_id: str) -> tuple[BoardSection, ...]:
    found = questions.ask(rt, profile, lambda http, token: provider.list_sections(http, token, board_id))
    profiles.note_choice_labels(rt, profile.id, "boardSectionId", {section.id: section.name for section in found})
    return tuple(found)
