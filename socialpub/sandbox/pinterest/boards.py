"""Boards and their sections."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from socialpub.sandbox.call import Answer, Call, Refusal
from socialpub.sandbox.pinterest.access import Caller, api_call, json_object
from socialpub.sandbox.pinterest.paging import paged
from socialpub.sandbox.pinterest.shapes import complain, members, one_of, text, truth

if TYPE_CHECKING:
    from socialpub.sandbox.pinterest.network import Account, Pinterest

PUBLIC, PROTECTED, SECRET = "PUBLIC", "PROTECTED", "SECRET"
PRIVACIES = (PUBLIC, PROTECTED, SECRET)
FILTERS = {"ALL": PRIVACIES, "PUBLIC_AND_SECRET": (PUBLIC, SECRET), **{one: (one,) for one in PRIVACIES}}
CREATE = members(
    {"name": text(1, 180), "description": text(0, 500), "privacy": one_of(*PRIVACIES), "is_ads_only": truth},
    required=("name",),
    nullable=("description",),
)
SECTION = members({"name": text(1, 180), "id": text(0, 30)}, required=("name",))


@dataclass(slots=True)
class Board:
    id: str
    name: str
    owner_id: str
    privacy: str
    created_at: datetime
    description: str | None = None
    sandbox: bool = False
    """In Pinterest's own sandbox, which production does not know."""
    is_ads_only: bool = False
    collaborators: tuple[str, ...] = ()
    """Ids of other accounts that may pin here."""
    sections: dict[str, str] = field(default_factory=dict)
    """Names by id."""
    modified_at: datetime | None = None

    def takes_pins_of(self, account: "Account") -> bool:
        return account.id == self.owner_id or account.id in self.collaborators


@api_call("org_read", "boards:read")
def listing(pinterest: "Pinterest", call: Call, caller: Caller) -> Answer:
    refuse_pinner_data(pinterest, caller)
    wanted = call.query().get("privacy", "ALL")
    if wanted not in FILTERS:
        raise Refusal(pinterest.error(400, 400, f"Invalid parameters: privacy is one of {', '.join(FILTERS)}."))
    now = pinterest.world.now()
    found = [
        board
        for board in pinterest.boards.values()
        if board.sandbox == caller.sandbox
        and board.takes_pins_of(caller.account)
        and board.privacy in FILTERS[wanted]
        and (board.privacy != SECRET or caller.may("boards:read_secret"))
        and (now - board.created_at).total_seconds() >= pinterest.board_lag_seconds
    ]
    return paged(pinterest, call, found, lambda board: _show(pinterest, board))


@api_call("org_read", "boards:read")
def read(pinterest: "Pinterest", call: Call, caller: Caller) -> Answer:
    return pinterest.answer(200, _show(pinterest, readable(pinterest, call.path_params["board_id"], caller)))


@api_call("org_write", "boards:read", "boards:write")
def create(pinterest: "Pinterest", call: Call, caller: Caller) -> Answer:
    body = json_object(pinterest, call)
    complain(pinterest, CREATE, body, code=400)
    privacy = body.get("privacy", PUBLIC)
    if privacy == SECRET and not caller.may("boards:write_secret"):
        raise Refusal(pinterest.refusal_answer("", "missing_scope"))
    same = (board for board in pinterest.boards.values() if board.owner_id == caller.account.id)
    if any(board.name.lower() == body["name"].lower() and board.sandbox == caller.sandbox for board in same):
        raise Refusal(pinterest.error(400, 400, "Invalid board parameters: you already have a board with this name."))
    board = pinterest.add_board(
        caller.account, body["name"], privacy=privacy, description=body.get("description"), sandbox=caller.sandbox
    )
    return pinterest.answer(pinterest.create_status, _show(pinterest, board))


@api_call("org_read", "boards:read")
def sections(pinterest: "Pinterest", call: Call, caller: Caller) -> Answer:
    board = readable(pinterest, call.path_params["board_id"], caller)
    return paged(pinterest, call, list(board.sections.items()), lambda one: {"id": one[0], "name": one[1]})


@api_call("org_write", "boards:read", "boards:write")
def create_section(pinterest: "Pinterest", call: Call, caller: Caller) -> Answer:
    body = json_object(pinterest, call)
    complain(pinterest, SECTION, body, code=400)
    board = readable(pinterest, call.path_params["board_id"], caller)
    if body["name"] in board.sections.values():
        raise Refusal(pinterest.error(409, 409, "Board section conflict: there is a section with this name."))
    section_id = pinterest.add_section(board, body["name"])
    return pinterest.answer(201, {"id": section_id, "name": body["name"]})


def readable(pinterest: "Pinterest", board_id: str, caller: Caller) -> Board:
    """The board, when this caller may read it."""
    refuse_pinner_data(pinterest, caller)
    board = pinterest.boards.get(board_id)
    if board is None or board.sandbox != caller.sandbox:
        raise Refusal(pinterest.refusal_answer("", "board_not_found"))
    if not board.takes_pins_of(caller.account) or (board.privacy == SECRET and not caller.may("boards:read_secret")):
        raise Refusal(pinterest.refusal_answer("", "not_permitted"))
    return board


def refuse_pinner_data(pinterest: "Pinterest", caller: Caller) -> None:
    if pinterest.pinner_data_denied and not caller.account.is_business:
        raise Refusal(pinterest.refusal_answer("", "pinner_data"))


def _show(pinterest: "Pinterest", board: Board) -> dict[str, Any]:
    return {
        "id": board.id,
        "name": board.name,
        "description": board.description,
        "owner": {"username": pinterest.accounts[board.owner_id].username},
        "privacy": board.privacy,
        "created_at": stamp(board.created_at),
        "board_pins_modified_at": stamp(board.modified_at or board.created_at),
        "pin_count": len(pinterest.pins_on(board)),
        "follower_count": 0,
        "collaborator_count": len(board.collaborators),
        "is_ads_only": board.is_ads_only,
        "media": {"image_cover_url": None, "pin_thumbnail_urls": []},
    }


def stamp(at: datetime) -> str:
    """As Pinterest writes times: without a zone."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
