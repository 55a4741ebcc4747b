"""Pinterest's API of the account, its boards and their sections."""

from typing import Annotated, Any, Literal

from pydantic import StringConstraints

from socialpub.sandbox.messages import Reply, SandboxRequest, SandboxShape
from socialpub.sandbox.pinterest import replies
from socialpub.sandbox.pinterest.models import PUBLIC, SECRET, PinterestBoard
from socialpub.sandbox.pinterest.network import PinterestSandbox
from socialpub.sandbox.pinterest.replies import paged, zoneless
from socialpub.sandbox.pinterest.requests import PinterestCaller, api_call, valid_body

Name = Annotated[str, StringConstraints(min_length=1, max_length=180)]


class NewBoard(SandboxShape):
    name: Name
    description: Annotated[str, StringConstraints(max_length=500)] | None = None
    privacy: Literal["PUBLIC", "PROTECTED", "SECRET"] = "PUBLIC"
    is_ads_only: bool = False


class NewSection(SandboxShape):
    name: Name


@api_call("org_read", "user_accounts:read")
def user_account(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    account = caller.account
    boards = pinterest.boards_of(account.username)
    facts = {
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
    }
    return replies.ok(pinterest, 200, facts)


@api_call("org_read", "boards:read")
def list_boards(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    _refuse_pinner_data(pinterest, caller)
    found = [
        board
        for board in pinterest.boards.values()
        if board.takes_pins_of(caller.account)
        and (board.privacy != SECRET or caller.may("boards:read_secret"))
        and pinterest.seconds_since(board.created_at) >= pinterest.board_lag_seconds
    ]
    return paged(pinterest, request, found, lambda board: _board_json(pinterest, board))


@api_call("org_read", "boards:read")
def read_board(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    return replies.ok(pinterest, 200, _board_json(pinterest, readable_board(pinterest, request, caller)))


@api_call("org_write", "boards:read", "boards:write")
def create_board(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    body = valid_body(pinterest, request, NewBoard, code=400)
    privacy = body.get("privacy", PUBLIC)
    if privacy == SECRET and not caller.may("boards:write_secret"):
        raise replies.refused(pinterest, "missing_scope")
    if any(one.name.lower() == body["name"].lower() for one in pinterest.boards_of(caller.account.username)):
        raise replies.invalid(pinterest, 400, 400, "Invalid board parameters: you already have a board with this name.")
    board = pinterest.add_board(caller.account, body["name"], privacy=privacy, description=body.get("description"))
    return replies.ok(pinterest, pinterest.create_status, _board_json(pinterest, board))


@api_call("org_read", "boards:read")
def list_sections(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    board = readable_board(pinterest, request, caller)
    return paged(pinterest, request, list(board.sections.items()), lambda one: {"id": one[0], "name": one[1]})


@api_call("org_write", "boards:read", "boards:write")
def create_section(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    name = valid_body(pinterest, request, NewSection, code=400)["name"]
    board = readable_board(pinterest, request, caller)
    if name in board.sections.values():
        raise replies.invalid(pinterest, 409, 409, "Board section conflict: there is a section with this name.")
    return replies.ok(pinterest, 201, {"id": pinterest.add_section(board, name), "name": name})


def readable_board(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> PinterestBoard:
    """Return the board of the path if this caller may read it. Raise Refusal."""
    _refuse_pinner_data(pinterest, caller)
    board = pinterest.boards.get(request.path_params["board_id"])
    if board is None:
        raise replies.refused(pinterest, "board_not_found")
    if not board.takes_pins_of(caller.account) or (board.privacy == SECRET and not caller.may("boards:read_secret")):
        raise replies.refused(pinterest, "not_permitted")
    return board


def _refuse_pinner_data(pinterest: PinterestSandbox, caller: PinterestCaller) -> None:
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
