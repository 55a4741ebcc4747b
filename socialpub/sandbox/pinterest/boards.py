"""The account, its boards and their sections."""

from typing import Any

from socialpub.sandbox.messages import Reply, SandboxRequest
from socialpub.sandbox.pinterest import replies
from socialpub.sandbox.pinterest.models import PROTECTED, PUBLIC, SECRET, PinterestBoard
from socialpub.sandbox.pinterest.network import PinterestSandbox
from socialpub.sandbox.pinterest.replies import paged, zoneless
from socialpub.sandbox.pinterest.requests import (
    PinterestCaller,
    api_call,
    boolean,
    json_object,
    object_of,
    one_of,
    require_valid,
    text,
)

# MERGED from sandbox/pinterest/user_account.py: `GET /user_account`.


@api_call("org_read", "user_accounts:read")
def user_account(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    account = caller.account
    boards = [one for one in pinterest.boards.values() if one.owner_id == account.id and one.sandbox == caller.sandbox]
    return replies.ok(
        pinterest,
        200,
        {
            "id": account.id,
            "username": account.username,
            "account_type": account.account_type,
            "business_name": account.business_name if account.is_business else None,
            "profile_image": f"{request.base_url}/pinterest/avatars/{account.picture or account.username}.png",
            "website_url": "",
            "about": "",
            "board_count": len(boards),
            "pin_count": sum(len(pinterest.pins_on(board)) for board in boards),
            "follower_count": 0,
            "following_count": 0,
            "monthly_views": 0,
        },
    )


# MERGED from sandbox/pinterest/boards.py: Boards and their sections.

PRIVACIES = (PUBLIC, PROTECTED, SECRET)
FILTERS = {"ALL": PRIVACIES, "PUBLIC_AND_SECRET": (PUBLIC, SECRET), **{one: (one,) for one in PRIVACIES}}
BOARD = object_of(
    {"name": text(1, 180), "description": text(0, 500), "privacy": one_of(*PRIVACIES), "is_ads_only": boolean},
    required=("name",),
    nullable=("description",),
)
SECTION = object_of({"name": text(1, 180), "id": text(0, 30)}, required=("name",))


@api_call("org_read", "boards:read")
def list_boards(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    refuse_pinner_data(pinterest, caller)
    wanted = request.query().get("privacy", "ALL")
    if wanted not in FILTERS:
        raise replies.invalid(pinterest, 400, 400, f"Invalid parameters: privacy is one of {', '.join(FILTERS)}.")
    found = [
        board
        for board in pinterest.boards.values()
        if board.sandbox == caller.sandbox
        and board.takes_pins_of(caller.account)
        and board.privacy in FILTERS[wanted]
        and (board.privacy != SECRET or caller.may("boards:read_secret"))
        and pinterest.seconds_since(board.created_at) >= pinterest.board_lag_seconds
    ]
    return paged(pinterest, request, found, lambda board: _board_json(pinterest, board))


@api_call("org_read", "boards:read")
def read_board(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    return replies.ok(
        pinterest, 200, _board_json(pinterest, readable_board(pinterest, request.path_params["board_id"], caller))
    )


@api_call("org_write", "boards:read", "boards:write")
def create_board(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    body = json_object(pinterest, request)
    require_valid(pinterest, BOARD, body, code=400)
    privacy = body.get("privacy", PUBLIC)
    if privacy == SECRET and not caller.may("boards:write_secret"):
        raise replies.refused(pinterest, "missing_scope")
    same = (board for board in pinterest.boards.values() if board.owner_id == caller.account.id)
    if any(board.name.lower() == body["name"].lower() and board.sandbox == caller.sandbox for board in same):
        raise replies.invalid(pinterest, 400, 400, "Invalid board parameters: you already have a board with this name.")
    board = pinterest.add_board(
        caller.account, body["name"], privacy=privacy, description=body.get("description"), sandbox=caller.sandbox
    )
    return replies.ok(pinterest, pinterest.create_status, _board_json(pinterest, board))


@api_call("org_read", "boards:read")
def list_sections(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    board = readable_board(pinterest, request.path_params["board_id"], caller)
    return paged(pinterest, request, list(board.sections.items()), lambda one: {"id": one[0], "name": one[1]})


@api_call("org_write", "boards:read", "boards:write")
def create_section(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    body = json_object(pinterest, request)
    require_valid(pinterest, SECTION, body, code=400)
    board = readable_board(pinterest, request.path_params["board_id"], caller)
    if body["name"] in board.sections.values():
        raise replies.invalid(pinterest, 409, 409, "Board section conflict: there is a section with this name.")
    section_id = pinterest.add_section(board, body["name"])
    return replies.ok(pinterest, 201, {"id": section_id, "name": body["name"]})


def readable_board(pinterest: PinterestSandbox, board_id: str, caller: PinterestCaller) -> PinterestBoard:
    """The board, when this caller may read it."""
    refuse_pinner_data(pinterest, caller)
    board = pinterest.boards.get(board_id)
    if board is None or board.sandbox != caller.sandbox:
        raise replies.refused(pinterest, "board_not_found")
    if not board.takes_pins_of(caller.account) or (board.privacy == SECRET and not caller.may("boards:read_secret")):
        raise replies.refused(pinterest, "not_permitted")
    return board


def refuse_pinner_data(pinterest: PinterestSandbox, caller: PinterestCaller) -> None:
    if pinterest.pinner_data_denied and not caller.account.is_business:
        raise replies.refused(pinterest, "pinner_data")


def _board_json(pinterest: PinterestSandbox, board: PinterestBoard) -> dict[str, Any]:
    return {
        "id": board.id,
        "name": board.name,
        "description": board.description,
        "owner": {"username": pinterest.accounts[board.owner_id].username},
        "privacy": board.privacy,
        "created_at": zoneless(board.created_at),
        "board_pins_modified_at": zoneless(board.modified_at or board.created_at),
        "pin_count": len(pinterest.pins_on(board)),
        "follower_count": 0,
        "collaborator_count": len(board.collaborators),
        "is_ads_only": board.is_ads_only,
        "media": {"image_cover_url": None, "pin_thumbnail_urls": []},
    }
