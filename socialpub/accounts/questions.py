"""Questions to a network for one profile whose owner waits for the answer: its boards, what a creator may do now.

An answer is kept for a minute, so a form that is shown again does not ask again. A failure is also kept, so a network
that hangs does not occupy a thread for each form.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from socialpub.accounts import hints, profiles, tokens
from socialpub.accounts.hints import Surface
from socialpub.core.errors import InvalidRequest, OperatorError
from socialpub.core.secrets import redaction
from socialpub.db.connection import Tx
from socialpub.db.tables import audit_log, delivery_rows, waits
from socialpub.db.tables.audit_log import AuditAction
from socialpub.db.tables.profile_rows import Profile
from socialpub.providers.base import Withdrawn
from socialpub.providers.http import Http
from socialpub.providers.pinterest import Pinterest
from socialpub.providers.pinterest.boards import SECRET, Board, BoardSection
from socialpub.providers.responses import AuthExpired, NoAnswer, ProviderError, Rejected
from socialpub.providers.tiktok import TikTok
from socialpub.providers.tiktok.creator import POSTING_BLOCKS, CreatorInfo
from socialpub.providers.tiktok.options import CREATOR
from socialpub.runtime import Runtime

T = TypeVar("T")

REMEMBERED_SECONDS = 60.0


def ask(rt: Runtime, profile: Profile, question: Callable[[Http, str], T]) -> T:
    """Return the network's answer to `question(http, token)`, with another token when it refuses the first one.

    Asks the network, so do not call on the event loop. Raises `errors.py` and `Withdrawn`.
    """
    http, token = rt.http_for(profile.provider), tokens.load_fresh(rt, profile.id)
    try:
        return redaction.mask_value(question(http, token))
    except AuthExpired:
        return redaction.mask_value(question(http, tokens.replace_spent(rt, profile.id, spent=token)))


@contextmanager
def explain_failures(rt: Runtime, profile: Profile, failure: str, surface: Surface = Surface.SHELL) -> Iterator[None]:
    """Convert an exception of a question to an OperatorError that begins with `failure` and contains the remedy."""
    provider = rt.providers[profile.provider]
    try:
        yield
    except Withdrawn:
        hint = f"To connect the account as a new profile, {hints.connect(provider.name, surface)}."
        raise OperatorError(f"The profile “{profile.name}” is disconnected.", hint) from None
    except tokens.Paused as paused:
        raise OperatorError(f"{failure} {paused.message}", f"To continue, {hints.resume(surface)}.") from None
    except ProviderError as error:
        raise OperatorError(f"{failure} {error.message}", hints.after_question(provider, error, surface)) from error


def cache_answer(rt: Runtime, profile: Profile, what: str, answer: object) -> None:
    """Make `cached` return this for a minute: the owner has just changed what the network answers."""
    question = (profile.id, profile.access_token, what)
    rt.tokens.answers[question] = (rt.clock.monotonic() + REMEMBERED_SECONDS, answer)


def cached(rt: Runtime, profile: Profile, what: str, answer: Callable[[], T], *, again: bool = False) -> T:
    """Return the answer of the last minute, else `answer()`.

    `what` identifies the question. All answers to a question have the same type. Raises OperatorError, which is also
    kept. `again`: ask again, unless the last minute brought a failure.
    """
    question = (profile.id, profile.access_token, what)
    known, now = rt.tokens.answers, rt.clock.monotonic()
    for old in [name for name, (until, _) in list(known.items()) if until <= now]:
        known.pop(old, None)
    found: object
    if question in known and not (again and not isinstance(known[question][1], OperatorError)):
        found = known[question][1]
    else:
        try:
            found = answer()
        except OperatorError as error:
            found = error
        cache_answer(rt, profile, what, found)
    if isinstance(found, OperatorError):
        raise found
    return found  # type: ignore[return-value]


# --- what a TikTok account may do now ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PostingBarred:
    """The reason why this account cannot post now."""

    message: str


def ask_creator(rt: Runtime, profile_id: str, surface: Surface = Surface.SHELL) -> CreatorInfo | PostingBarred:
    """Return the posting options of this TikTok account. Wake its waiting posts when the account may post again.

    TikTok requires that each form shows the choices, and that a form stops if the account cannot post
    (https://developers.tiktok.com/doc/content-sharing-guidelines, "Required UX Implementation in Your App", 2026-10).
    Asks the network, so do not call on the event loop. Raises NotFound for an unknown profile, and OperatorError when
    it is not a TikTok account or TikTok does not answer.
    """
    profile = profiles.get(rt.reader, profile_id)
    provider = rt.providers[profile.provider]
    if not isinstance(provider, TikTok):
        raise OperatorError(f"“{profile.name}” is an account of {provider.label}, not of TikTok.")
    with explain_failures(rt, profile, "TikTok did not return the posting options of this account.", surface):
        try:
            info = ask(rt, profile, lambda http, token: provider.ask_creator(http, token, profile.scopes))
            if waits.cooldown_until(rt.reader, profile_id, (CREATOR,), rt.stamp()):
                rt.write(_end_wait, profile_id)
            return info
        except ProviderError as error:
            why = POSTING_BLOCKS.get(error.code or "")
            if why is None:
                raise
            return PostingBarred(why)


def _end_wait(rt: Runtime, tx: Tx, profile_id: str) -> None:
    until = waits.end_cooldown(tx, profile_id, CREATOR)
    if until is not None:
        delivery_rows.wake_postponed(tx, profile_id, until)


def load_creator(
    rt: Runtime, profile_id: str, surface: Surface = Surface.SHELL, *, again: bool = False
) -> CreatorInfo | PostingBarred:
    """Return the answer of the last minute, for a form that is shown again. Raises as `ask_creator` does.

    `again`: a form that opens asks again, unless TikTok did not answer a moment ago.
    """
    profile, what = profiles.get(rt.reader, profile_id), f"creator for the {surface}"
    return cached(rt, profile, what, lambda: ask_creator(rt, profile_id, surface), again=again)


# --- boards -----------------------------------------------------------------------------------------------------------

# Creating has no idempotency key, so after a lost answer the board may exist. The call is never repeated: the boards of
# the account are listed before the call, and again after an unclear answer.

BOARDS_NOT_LISTED = "The boards could not be listed."
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
    with explain_failures(rt, profile, BOARDS_NOT_LISTED):
        found = _boards(rt, profile, provider)
        if not with_sections:
            return [BoardWithSections(board) for board in found]
        return [BoardWithSections(board, _sections(rt, profile, provider, board.id)) for board in found]


def load_boards(rt: Runtime, profile_id: str, chosen: str | None, surface: Surface) -> list[BoardWithSections]:
    """Return every board, the chosen one with its sections; kept for a minute, for a form that is shown again.

    Raises as `list_all` does.
    """
    profile, provider = _account(rt, profile_id)

    def lately(what: str, question: Callable[[], T]) -> T:
        def explained() -> T:
            with explain_failures(rt, profile, BOARDS_NOT_LISTED, surface):
                return question()

        return cached(rt, profile, what, explained)

    found = lately(f"boards for the {surface}", lambda: _boards(rt, profile, provider))
    if chosen is None or chosen not in {board.id for board in found}:
        return [BoardWithSections(board) for board in found]
    of_chosen = lately(f"sections of {chosen} for the {surface}", lambda: _sections(rt, profile, provider, chosen))
    return [BoardWithSections(board, of_chosen if board.id == chosen else ()) for board in found]


def create_board(
    rt: Runtime, profile_id: str, name: str, *, secret: bool = False, surface: Surface = Surface.SHELL
) -> tuple[Board, bool]:
    """Return a board of this name and whether it is new. `name` may be the id of an existing board.

    Calls the network, so do not call on the event loop. Raises InvalidRequest, NotFound, and OperatorError.
    """
    profile, provider = _account(rt, profile_id)
    name = _checked(name, "board")
    how = provider.oauth.how_to_use_secret_boards(profile.scopes) if secret and profile.scopes else None
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
        boards = [*(one for one in before if one.id != board.id), board]
        cache_answer(rt, profiles.get(rt.reader, profile.id), f"boards for the {surface}", boards)
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
        sections = (*(one for one in before if one.id != section.id), section)
        question = f"sections of {board.id} for the {surface}"
        cache_answer(rt, profiles.get(rt.reader, profile.id), question, sections)
        profiles.note_choice_labels(rt, profile.id, "boardSectionId", {section.id: section.name})
        rt.write(_record, AuditAction.PROFILE_SECTION_CREATED, profile, board=board.name, section=section.name)
    return section, is_new


def _create_once(
    what: str, is_it: Callable[[Found], bool], known: Callable[[], list[Found]], call: Callable[[], Found]
) -> tuple[Found, bool, list[Found]]:
    """Return the created or found item, whether the item is new, and the items that existed before.

    Raises as `create_board` does.
    """
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
            f"Wait a minute, then try again with the same name. If the {what} exists, no second {what} is created.",
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


def _record(_: Runtime, tx: Tx, /, action: AuditAction, profile: Profile, **detail: str | None) -> None:
    audit_log.record(tx, action, profile.id, profile.name, provider=profile.provider, **detail)


def _readable_boards(rt: Runtime, profile: Profile, provider: Pinterest) -> list[Board]:
    """Return the boards, or none if this app may write but not read them."""
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
        raise OperatorError(f"“{profile.name}” is an account of {provider.label}, which does not support boards.")
    return profile, provider


def _boards(rt: Runtime, profile: Profile, provider: Pinterest) -> list[Board]:
    found = ask(rt, profile, provider.list_boards)
    profiles.note_choice_labels(rt, profile.id, "boardId", {board.id: board.name for board in found})
    return found


def _sections(rt: Runtime, profile: Profile, provider: Pinterest, board_id: str) -> tuple[BoardSection, ...]:
    found = ask(rt, profile, lambda http, token: provider.list_sections(http, token, board_id))
    profiles.note_choice_labels(rt, profile.id, "boardSectionId", {section.id: section.name for section in found})
    return tuple(found)
