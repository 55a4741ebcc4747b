"""`list-boards` and `create-board`: the ids that `boardId` and `boardSectionId` want."""

import click

from socialpub.accounts import pinterest_boards
from socialpub.accounts.pinterest_boards import BoardWithSections, CreatedBoard, CreatedSection
from socialpub.cli.admin.arguments import ID
from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.output import print_json, print_line, print_note, print_table, spinner
from socialpub.core import commands


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
    create = commands.line("admin", "create-board", profile_id, "NAME")
    empty = f"This account has no board yet. Create one: `{create}`"
    print_table(("ID", "Name", "Section", "Privacy", "Pins"), rows, empty)
    if rows:
        line = commands.line("admin", "set-options", profile_id, "boardId=ID")
        print_note(f"To make one the default of this profile: `{line}`")


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


@click.command()
@click.argument("profile_id", metavar="ID", type=ID)
@click.argument("name")
@click.option("--secret", is_flag=True, help="Only the account itself sees the board.")
@click.option("--section", "sections", metavar="NAME", multiple=True, help="Create a section of the board. Repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print the board and its sections as JSON.")
@pass_command_context
def create_board(
    context: CommandContext, profile_id: str, name: str, secret: bool, sections: tuple[str, ...], as_json: bool
) -> None:
    """Create the board NAME of a Pinterest profile, and print its id.

    A board or section that exists already is used: the same command again creates nothing twice. To add sections to a
    board, give its name or its id.
    """
    with context.open() as rt, spinner("Creating the board"):
        made = pinterest_boards.create_board(rt, profile_id, name, secret=secret)
        created = [pinterest_boards.create_section(rt, profile_id, made.board, one) for one in sections]
    if as_json:
        print_json(_created_shape(made, created))
        return
    print_line(made.board.id)
    print_note(f"The board “{made.board.name}” {_done(made.is_new)}.")
    for one in created:
        print_note(f"The section “{one.section.name}” ({one.section.id}) {_done(one.is_new)}.")


def _created_shape(made: CreatedBoard, created: list[CreatedSection]) -> dict[str, object]:
    listed = [{"id": one.section.id, "name": one.section.name, "created": one.is_new} for one in created]
    return {**_shape(BoardWithSections(made.board), sections=False), "created": made.is_new, "sections": listed}


def _done(is_new: bool) -> str:
    return "is created" if is_new else "exists already"
