"""Boards on the command line."""

import json
from typing import Any

import pytest

from socialpub.core.settings.networks import PINTEREST_SCOPES, PINTEREST_SECRET_SCOPES
from socialpub.db.tables import audit_log
from socialpub.ops import audit_text
from socialpub.providers.pinterest import Pinterest
from socialpub.providers.pinterest.boards import Board, BoardSection
from socialpub.providers.responses import NoAnswer
from tests.integration.cli.conftest import Terminal

NOBODY = "019a4c8e-7c1b-7a55-9f0e-3b1f0c2d4e5f"
BOARDS = [Board("5001", "Recipes [new]", "PUBLIC", 12), Board("5002", "Secrets", "SECRET")]


@pytest.fixture
def profile(terminal: Terminal) -> str:
    return terminal.connect(network="pinterest")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The tokens of all requests for boards. An exception in `answers` comes first."""
    tokens: list[Any] = []

    def list_boards(self: Pinterest, http: object, token: str) -> list[Board]:
        tokens.append(token)
        return BOARDS

    def list_sections(self: Pinterest, http: object, token: str, board_id: str) -> list[BoardSection]:
        return [BoardSection("7001", "Soups")] if board_id == "5001" else []

    monkeypatch.setattr(Pinterest, "list_boards", list_boards)
    monkeypatch.setattr(Pinterest, "list_sections", list_sections)
    return tokens


def test_boards_are_shown_with_their_ids(terminal, profile, asked):
    done = terminal.success("admin", "list-boards", profile)
    assert "5001" in done.stdout
    assert "Recipes [new]" in done.stdout
    assert "secret" in done.stdout
    assert "Soups" not in done.stdout
    assert json.loads(terminal("admin", "list-boards", profile, "--json").stdout) == [
        {"id": "5001", "name": "Recipes [new]", "privacy": "PUBLIC", "pinCount": 12},
        {"id": "5002", "name": "Secrets", "privacy": "SECRET"},
    ]


def test_sections_are_shown_when_asked_for(terminal, profile, asked):
    assert "Soups" in terminal("admin", "list-boards", profile, "--sections").stdout
    shown = json.loads(terminal("admin", "list-boards", profile, "--sections", "--json").stdout)
    assert [board["sections"] for board in shown] == [[{"id": "7001", "name": "Soups"}], []]


def test_boards_that_cannot_be_shown_say_why(terminal, profile, monkeypatch):
    assert "which does not support boards" in terminal.refusal("admin", "list-boards", terminal.connect())
    assert terminal("admin", "list-boards", NOBODY).exit_code == 1

    def away(self: Pinterest, http: object, token: str) -> list[Board]:
        raise NoAnswer("Pinterest did not answer in time.")

    monkeypatch.setattr(Pinterest, "list_boards", away)
    done = terminal.refusal("admin", "list-boards", profile)
    assert "did not answer in time" in done
    assert "Try again" in done
    terminal("admin", "disconnect-profile", profile)
    assert "disconnected" in terminal("admin", "list-boards", profile).stderr


def test_an_account_without_a_board_gets_the_command_that_creates_one(terminal, profile, monkeypatch):
    monkeypatch.setattr(Pinterest, "list_boards", lambda self, http, token: [])
    done = terminal.success("admin", "list-boards", profile)
    assert done.stdout == ""
    assert "does not have a board yet" in done.stderr


# --- creating --------------------------------------------------------------------------------------------------------


def names(terminal: Terminal) -> list[str]:
    return [board.name for board in terminal.world.pinterest.boards_of("demo")]


def test_a_board_with_sections_is_created_and_its_id_printed(terminal, profile):
    before = names(terminal)
    done = terminal.success(
        "admin", "create-board", profile, " Winter  prints ", "--section", "Blue", "--section", "Red"
    )
    board = terminal.world.pinterest.boards_of("demo")[-1]
    assert done.stdout.strip() == board.id
    assert names(terminal) == [*before, "Winter prints"]
    assert (board.privacy, list(board.sections.values())) == ("PUBLIC", ["Blue", "Red"])
    assert "The section “Blue”" in done.stderr
    listed = json.loads(terminal("admin", "list-boards", profile, "--sections", "--json").stdout)
    assert [one["name"] for one in listed[-1]["sections"]] == ["Blue", "Red"]


def test_the_same_command_again_creates_nothing_twice_and_adds_what_is_missing(terminal, profile):
    first = terminal("admin", "create-board", profile, "Prints", "--section", "Blue").stdout.strip()
    boards = names(terminal)
    done = terminal("admin", "create-board", profile, "prints", "--section", "Blue", "--section", "Red", "--json")
    shown = json.loads(done.stdout)
    assert (shown["id"], shown["created"]) == (first, False)
    assert [(one["name"], one["created"]) for one in shown["sections"]] == [("Blue", False), ("Red", True)]
    by_id = json.loads(terminal("admin", "create-board", profile, first, "--section", "Green", "--json").stdout)
    assert (by_id["id"], by_id["sections"][0]["created"]) == (first, True)
    assert names(terminal) == boards
    unknown = terminal("admin", "create-board", profile, "9" * 18)
    assert (unknown.exit_code, names(terminal)) == (1, boards)
    assert "does not have a board with the id" in unknown.stderr


@pytest.mark.parametrize("times_out", [True, False])
def test_a_lost_answer_makes_no_second_board(terminal, profile, times_out):
    before = names(terminal)
    for call in ("create_board", "create_section"):
        script = terminal.world.pinterest.next(call)
        script.times_out_after_effect() if times_out else script.fails_with(500, after_effect=True)
    for created in ("board", "section"):
        lost = terminal.refusal("admin", "create-board", profile, "Prints", "--section", "Blue")
        assert f"The {created} may have been created." in lost
    done = terminal.success("admin", "create-board", profile, "Prints", "--section", "Blue")
    assert names(terminal) == [*before, "Prints"]
    board = terminal.world.pinterest.boards_of("demo")[-1]
    assert (done.stdout.strip(), list(board.sections.values())) == (board.id, ["Blue"])


def test_a_board_that_may_be_there_is_said_to_be_and_found_later(terminal, profile):
    terminal.world.pinterest.board_lag_seconds = 30
    terminal.world.pinterest.next("create_board").times_out_after_effect()
    done = terminal("admin", "create-board", profile, "Prints")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "The board may have been created." in done.stderr
    assert "no second board is created" in done.stderr
    again = terminal("admin", "create-board", profile, "Prints")
    assert again.exit_code == 1, "Pinterest refuses the name and does not list the board yet"
    terminal.clock.forward(60)
    assert "already exists" in terminal("admin", "create-board", profile, "Prints").stderr
    assert names(terminal).count("Prints") == 1


def test_a_secret_board_needs_scopes_that_are_named(terminal, profile):
    before = names(terminal)
    done = terminal.refusal("admin", "create-board", profile, "Plans", "--secret")
    assert "boards:write_secret" in done
    assert "scopes in [providers.pinterest]" in done
    assert names(terminal) == before

    scopes = (*PINTEREST_SCOPES, *PINTEREST_SECRET_SCOPES)
    granted = terminal.grant("demo", "pinterest", scopes=scopes)
    terminal("admin", "import-profile", "pinterest", stdin=granted)
    assert terminal("admin", "create-board", profile, "Plans", "--secret").exit_code == 0
    assert terminal.world.pinterest.boards_of("demo")[-1].privacy == "SECRET"
    terminal("admin", "create-board", profile, "Open")
    taken = terminal("admin", "create-board", profile, "Open", "--secret")
    assert "already exists and is not secret" in taken.stderr


def test_what_cannot_be_created_says_why(terminal, profile):
    for wrong, says in ((" ", "must not be empty"), ("x" * 181, "at most 180 characters and has 181")):
        assert says in terminal.refusal("admin", "create-board", profile, wrong)
    terminal.world.pinterest.next("create_board").refuses("account_under_review")
    assert "The board was not created." in terminal.refusal("admin", "create-board", profile, "Prints")
    assert "Prints" not in names(terminal)
    assert "which does not support boards" in terminal("admin", "create-board", terminal.connect(), "Prints").stderr


def test_an_app_that_may_not_read_boards_creates_them(terminal, profile):
    terminal.world.pinterest.next("list_boards").refuses("pinner_data")
    assert terminal("admin", "create-board", profile, "Prints").exit_code == 0
    assert names(terminal)[-1] == "Prints"


def test_what_was_created_is_in_the_audit_log_once(terminal, profile, rt):
    for _ in range(2):
        terminal("admin", "create-board", profile, "Prints", "--section", "Blue")
    entries = [one for one in audit_log.load_page(rt.db, ("profile",)).entries if "created" in one.action]
    account = f"the Pinterest profile “{entries[0].label}”"
    assert [audit_text.describe(one) for one in reversed(entries)] == [
        f"Created the board “Prints” of {account}.",
        f"Created the section “Blue” of the board “Prints” of {account}.",
    ]
    assert {one.actor for one in entries} == {"command"}
