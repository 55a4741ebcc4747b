"""`list-boards`: the ids that `boardId` and `boardSectionId` want."""

from typing import TYPE_CHECKING

import click

from socialpub.cli.admin.arguments import ID
from socialpub.cli.context import Appliance, pass_appliance
from socialpub.cli.output import say, show_json, show_table, working

if TYPE_CHECKING:
    from socialpub.accounts.pinterest_boards import Listed


@click.command()
@click.argument("profile_id", metavar="ID", type=ID)
@click.option("--sections", is_flag=True, help="Their sections too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@pass_appliance
def list_boards(appliance: Appliance, profile_id: str, sections: bool, as_json: bool) -> None:
    """Show the boards of a Pinterest profile."""
    from socialpub.accounts import pinterest_boards

    with appliance.open() as rt, working("Asking for the boards"):
        found = pinterest_boards.list_all(rt, profile_id, with_sections=sections)
    if as_json:
        show_json([_shape(one, sections) for one in found])
        return
    rows = [row for one in found for row in _rows(one)]
    show_table(
        ("ID", "Name", "Section", "Privacy", "Pins"),
        rows,
        "This account has no board yet. Make one on Pinterest, then look again.",
    )
    if rows:
        say("Store one for a profile: socialpub admin set-options PROFILE boardId=ID")


def _shape(one: "Listed", sections: bool) -> dict[str, object]:
    board = one.board
    told = {"id": board.id, "name": board.name, "privacy": board.privacy, "pinCount": board.pin_count}
    shape: dict[str, object] = {key: value for key, value in told.items() if value is not None}
    if sections:
        shape["sections"] = [{"id": section.id, "name": section.name} for section in one.sections]
    return shape


def _rows(one: "Listed") -> list[tuple[str, ...]]:
    board = one.board
    pins = "" if board.pin_count is None else str(board.pin_count)
    first = (board.id, board.name, "", (board.privacy or "").lower(), pins)
    return [first, *((section.id, board.name, section.name, "", "") for section in one.sections)]
