"""The boards that a profile's pins can be put on, for the owner to choose from."""

from dataclasses import dataclass

from socialpub.accounts import profiles, questions
from socialpub.accounts.remedies import Door
from socialpub.core.errors import OperatorError
from socialpub.db.models import Profile
from socialpub.providers.pinterest.adapter import Pinterest
from socialpub.providers.pinterest.boards import Board, BoardSection
from socialpub.runtime import Runtime

FAILURE = "The boards could not be listed."


@dataclass(frozen=True, slots=True)
class BoardWithSections:
    board: Board
    sections: tuple[BoardSection, ...] = ()
    """Empty also when they were not asked for."""


def list_all(rt: Runtime, profile_id: str, with_sections: bool = False) -> list[BoardWithSections]:
    """Every board, in the network's order.

    Asks the network, so not from the event loop; for sections once more per board. Raises NotFound when there is no
    such profile, OperatorError when its network has no boards or does not tell them.
    """
    profile, provider = _account(rt, profile_id)
    with questions.explained(rt, profile, FAILURE):
        found = questions.ask(rt, profile, provider.list_boards)
        if not with_sections:
            return [BoardWithSections(board) for board in found]
        return [BoardWithSections(board, _sections(rt, profile, provider, board.id)) for board in found]


def list_lately(rt: Runtime, profile_id: str, chosen: str | None, door: Door) -> list[BoardWithSections]:
    """Every board, only the chosen one with its sections; answered from memory for a minute: for a form that is shown
    again. Raises as `list_all` does."""
    profile, provider = _account(rt, profile_id)

    def boards() -> list[Board]:
        with questions.explained(rt, profile, FAILURE, door):
            return questions.ask(rt, profile, provider.list_boards)

    def sections() -> tuple[BoardSection, ...]:
        with questions.explained(rt, profile, FAILURE, door):
            return _sections(rt, profile, provider, str(chosen))

    found = questions.remembered(rt, profile, f"boards for the {door}", boards)
    if chosen not in {board.id for board in found}:
        return [BoardWithSections(board) for board in found]
    of_chosen = questions.remembered(rt, profile, f"sections of {chosen} for the {door}", sections)
    return [BoardWithSections(board, of_chosen if board.id == chosen else ()) for board in found]


def _account(rt: Runtime, profile_id: str) -> tuple[Profile, Pinterest]:
    profile = profiles.get(rt.reader, profile_id)
    provider = rt.providers[profile.provider]
    if not isinstance(provider, Pinterest):
        raise OperatorError(f"“{profile.name}” is an account of {provider.label}, which has no boards.")
    return profile, provider


def _sections(rt: Runtime, profile: Profile, provider: Pinterest, board_id: str) -> tuple[BoardSection, ...]:
    return tuple(questions.ask(rt, profile, lambda http, token: provider.list_sections(http, token, board_id)))
