"""Reading pins back, one or in lists, and deleting them."""

from socialpub.sandbox.pinterest import replies
from socialpub.sandbox.pinterest.access import PinterestCaller, api_call
from socialpub.sandbox.pinterest.boards import readable, refuse_pinner_data
from socialpub.sandbox.pinterest.models import Pin
from socialpub.sandbox.pinterest.network import PinterestSandbox
from socialpub.sandbox.pinterest.pin_json import pin_json
from socialpub.sandbox.pinterest.replies import paged
from socialpub.sandbox.reply import Reply
from socialpub.sandbox.request import SandboxRequest


@api_call("org_read", "boards:read", "pins:read")
def read(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    refuse_pinner_data(pinterest, caller)
    pin = _own(pinterest, request, caller)
    if pinterest.seconds_since(pin.created_at) < pinterest.read_lag_seconds:
        raise replies.refused(pinterest, "pin_not_found")
    return replies.ok(pinterest, 200, pin_json(pinterest, request, pin, caller))


@api_call("org_read", "boards:read", "pins:read")
def on_board(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    board = readable(pinterest, request.path_params["board_id"], caller)
    pins = pinterest.pins_on(board)
    if not pinterest.sections_in_board_list:
        pins = [pin for pin in pins if pin.section_id is None]
    return _list(pinterest, request, caller, pins)


@api_call("org_read", "boards:read", "pins:read")
def own(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    refuse_pinner_data(pinterest, caller)
    mine = [pin for pin in pinterest.pins_of(caller.account) if pin.sandbox == caller.sandbox]
    return _list(pinterest, request, caller, mine)


@api_call("org_write", "boards:read", "boards:write", "pins:read", "pins:write")
def delete(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    pinterest.delete_pin(_own(pinterest, request, caller))
    return replies.empty(pinterest, 204)


def _list(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller, pins: list[Pin]) -> Reply:
    """Newest first; pins that are too young do not show yet."""
    now, lag = pinterest.now(), pinterest.list_lag_seconds
    shown = [pin for pin in reversed(pins) if not lag or (now - pin.created_at).total_seconds() >= lag]
    return paged(pinterest, request, shown, lambda pin: pin_json(pinterest, request, pin, caller))


def _own(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Pin:
    pin = pinterest.find_pin(request.path_params["pin_id"])
    if pin is None or pin.sandbox != caller.sandbox:
        raise replies.refused(pinterest, "pin_not_found")
    if pin.account_id != caller.account.id:
        raise replies.refused(pinterest, "not_permitted")
    return pin
