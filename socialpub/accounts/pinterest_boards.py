"""The boards that a profile's pins can be put on, for the owner to choose from."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from socialpub.accounts import profiles, remedies, renewal
from socialpub.core import held_secrets
from socialpub.core.errors import OperatorError
from socialpub.providers.errors import AuthExpired, ProviderError
from socialpub.providers.job import Withdrawn
from socialpub.providers.pinterest.adapter import Pinterest
from socialpub.providers.pinterest.boards import Board, BoardSection
from socialpub.runtime import Runtime

T = TypeVar("T")


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
    profile = profiles.get(rt.reader, profile_id)
    provider = rt.providers[profile.provider]
    if not isinstance(provider, Pinterest):
        raise OperatorError(f"“{profile.name}” is an account of {provider.label}, which has no boards.")
    try:
        found = _asking(rt, profile_id, partial(provider.list_boards, rt.http_of(provider.name)))
        if not with_sections:
            return [BoardWithSections(board) for board in found]
        return [BoardWithSections(board, _sections(rt, provider, profile_id, board.id)) for board in found]
    except Withdrawn:
        hint = f"Connect it as a new profile: {remedies.reconnect(provider.name)}"
        raise OperatorError(f"The profile “{profile.name}” is disconnected.", hint) from None
    except ProviderError as error:
        message = f"The boards could not be listed. {error.message}"
        raise OperatorError(message, remedies.after_failure(provider, error)) from error


def _sections(rt: Runtime, provider: Pinterest, profile_id: str, board_id: str) -> tuple[BoardSection, ...]:
    return tuple(
        _asking(rt, profile_id, lambda token: provider.list_sections(rt.http_of(provider.name), token, board_id))
    )


def _asking(rt: Runtime, profile_id: str, ask: Callable[[str], T]) -> T:
    """What the network answers, with another token when it does not take the first one."""
    token = renewal.fresh(rt, profile_id)
    try:
        return held_secrets.masked(ask(token))
    except AuthExpired:
        return held_secrets.masked(ask(renewal.refresh(rt, profile_id, spent=token)))
