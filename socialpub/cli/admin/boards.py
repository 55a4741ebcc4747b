"""`list-boards`: the ids that `boardId` and `boardSectionId` want."""

import click

from socialpub.accounts import pinterest_boards
from socialpub.accounts.pinterest_boards import BoardWithSections
from socialpub.cli.admin.arguments import ID
from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.output import print_json, print_note, print_table, spinner


@click.command()
@click.argument("profile_id", metavar="ID", type=ID)
@click.option("--sections", is_flag=True, help="Show their sections too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@pass_command_context
def list_boards(context: CommandContext, profile_id: str, sections: bool, as_json: bool) -> None:
    """Show the boards of a Pinterest profile."""
    with context.open() as rt, spinner("Asking for the boards"):
        found = pinterest_boards.list_all(rt, profile_id, with_sections=sections)
    if as_json:
        print_json([_shape(one, sections) for one in found])
        return
    rows = [row for one in found for row in _rows(one)]
    print_table(
        ("ID", "Name", "Section", "Privacy", "Pins"),
        rows,
        "This account has no board yet. Create one on Pinterest, then run this command again.",
    )
    if rows:
        print_note("To have a profile use one: socialpub admin set-options PROFILE boardId=ID")


def _shape(one: BoardWithSections, sections: bool) -> dict[str, object]:
    board = one.board
    values = {"id": board.id, "name": board.name, "privacy": board.privacy, "pinCount": board.pin_count}
    shape: dict[str, object] = {key: value for key, value in values.items() if value is not None}
    if sections:
        shape["sections"] = [{"id": section.id, "name": section.name} for section in one.sections]
    return shape


def _rows(one: BoardWithSections) -> list[tuple[str, ...]]:
    board = one.board
    pins = "" if board.pin_count is None else str(board.pin_count)
    first = (board.id, board.name, "", (board.privacy or "").lower(), pins)
    return [first, *((section.id, board.name, section.name, "", "") for section in one.sections)]
