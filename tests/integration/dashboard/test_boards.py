"""Boards of a Pinterest account, created on the page of its profile."""

from socialpub.core.settings.networks import PINTEREST_SCOPES, PINTEREST_SECRET_SCOPES
from socialpub.db.tables import audit_log
from socialpub.ops import audit_text
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.support.dashboard_browser import DashboardBrowser
from tests.support.sandbox_http import connect_pinterest, connect_x


def names(world: World) -> list[str]:
    return [board.name for board in world.pinterest.boards_of("demo")]


def test_a_board_is_created_and_can_be_chosen_at_once(rt: Runtime, world: World, owner: DashboardBrowser) -> None:
    profile = connect_pinterest(rt, world)
    world.pinterest.board_lag_seconds = 30
    owner.open(f"/profiles/{profile}")
    page = owner.press("Create board", {"Board name": "Winter prints"})
    assert page.role("status") == "The board “Winter prints” is created."
    created = world.pinterest.boards_of("demo")[-1]
    assert (created.name, created.privacy) == ("Winter prints", "PUBLIC")
    page = owner.press("Save options", {"Board": created.id})
    assert "are saved" in page.role("status")
    assert "Winter prints" in owner.open("/compose").text
    (entry,) = [one for one in audit_log.read(rt.reader, ("profile",)).entries if "board" in one.action]
    assert (
        audit_text.describe(entry) == "Created the board “Winter prints” of the Pinterest profile “pinterest profile”."
    )


def test_a_section_is_created_on_the_board_that_is_chosen(rt: Runtime, world: World, owner: DashboardBrowser) -> None:
    profile = connect_pinterest(rt, world)
    board = world.pinterest.boards_of("demo")[0]
    owner.open(f"/profiles/{profile}")
    page = owner.press("Create section", {"In the board": board.id, "Section name": "Blue"})
    assert page.role("status") == "The section “Blue” is created."
    page = owner.press("Create section", {"In the board": board.id, "Section name": "blue"})
    assert page.role("status") == "The section “Blue” exists already."
    assert list(board.sections.values()).count("Blue") == 1


def test_a_button_that_is_pressed_twice_and_a_lost_answer_make_one_board(
    rt: Runtime, world: World, owner: DashboardBrowser
) -> None:
    profile = connect_pinterest(rt, world)
    before = names(world)
    world.pinterest.next("create_board").times_out_after_effect()
    owner.open(f"/profiles/{profile}")
    assert owner.press("Create board", {"Board name": "Plans"}).role("status") == "The board “Plans” is created."
    page = owner.press("Create board", {"Board name": "Plans"})
    assert page.role("status") == "The board “Plans” exists already."
    assert names(world) == [*before, "Plans"]


def test_a_name_that_cannot_be_is_refused_at_its_field(rt: Runtime, world: World, owner: DashboardBrowser) -> None:
    profile = connect_pinterest(rt, world)
    owner.open(f"/profiles/{profile}")
    page = owner.press("Create board", {"Board name": "n" * 181})
    assert page.status == 400
    assert "at most 180 characters" in page.text
    assert world.pinterest.statuses("create_board") == []


def test_a_secret_board_says_what_the_connection_lacks(rt: Runtime, world: World, owner: DashboardBrowser) -> None:
    owner.open(f"/profiles/{connect_pinterest(rt, world)}")
    page = owner.press("Create board", {"Board name": "Plans", "Secret: only the account itself sees the board": "yes"})
    assert page.status == 409
    assert "boards:write_secret" in page.role("alert")
    profile = connect_pinterest(rt, world, "studio", scopes=(*PINTEREST_SCOPES, *PINTEREST_SECRET_SCOPES))
    owner.open(f"/profiles/{profile}")
    page = owner.press("Create board", {"Board name": "Plans", "Secret: only the account itself sees the board": "yes"})
    assert page.role("status") == "The board “Plans” is created."
    assert world.pinterest.boards_of("studio")[-1].privacy == "SECRET"


def test_an_account_without_boards_leads_to_the_form_and_other_networks_have_none(
    rt: Runtime, world: World, owner: DashboardBrowser
) -> None:
    world.pinterest.boards.clear()
    page = owner.open(f"/profiles/{connect_pinterest(rt, world)}")
    assert "Create one on the page of the profile" in page.text
    assert page.has_button("Create board")
    assert not page.has_button("Create section")
    assert not owner.open(f"/profiles/{connect_x(rt, world)}").has_button("Create board")
