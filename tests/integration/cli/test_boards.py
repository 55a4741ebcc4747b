"""Boards from the terminal: ids that nobody knows by heart."""

import json
from typing import Any

import pytest

from socialpub.providers.errors import AuthExpired, NoAnswer
from socialpub.providers.pinterest.adapter import Pinterest
from socialpub.providers.pinterest.boards import Board, BoardSection
from tests.integration.cli.conftest import Terminal

NOBODY = "019a4c8e-7c1b-7a55-9f0e-3b1f0c2d4e5f"
BOARDS = [Board("5001", "Recipes [new]", "PUBLIC", 12), Board("5002", "Secrets", "SECRET")]


@pytest.fixture
def profile(terminal: Terminal) -> str:
    return terminal.connect(network="pinterest")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The tokens that boards were asked with. An exception put into `answers` comes first."""
    tokens: list[Any] = []

    def list_boards(self: Pinterest, http: object, token: str) -> list[Board]:
        tokens.append(token)
        return BOARDS

    def list_sections(self: Pinterest, http: object, token: str, board_id: str) -> list[BoardSection]:
        return [BoardSection("7001", "Soups")] if board_id == "5001" else []

    monkeypatch.setattr(Pinterest, "list_boards", list_boards)
    monkeypatch.setattr(Pinterest, "list_sections", list_sections)
    return tokens


def test_boards_are_shown_with_their_ids(terminal: Terminal, profile: str, asked: list[Any]) -> None:
    done = terminal("admin", "list-boards", profile)
    assert done.exit_code == 0
    assert "5001" in done.stdout
    assert "Recipes [new]" in done.stdout
    assert "secret" in done.stdout
    assert "Soups" not in done.stdout
    assert json.loads(terminal("admin", "list-boards", profile, "--json").stdout) == [
        {"id": "5001", "name": "Recipes [new]", "privacy": "PUBLIC", "pinCount": 12},
        {"id": "5002", "name": "Secrets", "privacy": "SECRET"},
    ]


def test_sections_are_shown_when_asked_for(terminal: Terminal, profile: str, asked: list[Any]) -> None:
    assert "Soups" in terminal("admin", "list-boards", profile, "--sections").stdout
    shown = json.loads(terminal("admin", "list-boards", profile, "--sections", "--json").stdout)
    assert [board["sections"] for board in shown] == [[{"id": "7001", "name": "Soups"}], []]


def test_a_token_that_is_not_taken_is_renewed_once(
    terminal: Terminal, profile: str, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = Pinterest.list_boards

    def expired_first(self: Pinterest, http: Any, token: str) -> list[Board]:
        found = listing(self, http, token)
        if len(asked) == 1:
            raise AuthExpired("Pinterest does not accept the access token.")
        return found

    monkeypatch.setattr(Pinterest, "list_boards", expired_first)
    assert terminal("admin", "list-boards", profile).exit_code == 0
    first, second = asked
    assert first != second


def test_boards_that_cannot_be_shown_say_why(terminal: Terminal, profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = terminal("admin", "list-boards", terminal.connect())
    assert elsewhere.exit_code == 1
    assert "has no boards" in elsewhere.stderr
    assert terminal("admin", "list-boards", NOBODY).exit_code == 1

    def away(self: Pinterest, http: object, token: str) -> list[Board]:
        raise NoAnswer("Pinterest did not answer in time.")

    monkeypatch.setattr(Pinterest, "list_boards", away)
    done = terminal("admin", "list-boards", profile)
    assert done.exit_code == 1
    assert "did not answer in time" in done.stderr
    assert "Try again" in done.stderr
    terminal("admin", "disconnect-profile", profile)
    assert "disconnected" in terminal("admin", "list-boards", profile).stderr


def test_an_account_without_a_board_is_told_to_make_one(
    terminal: Terminal, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pinterest, "list_boards", lambda self, http, token: [])
    done = terminal("admin", "list-boards", profile)
    assert done.exit_code == 0
    assert done.stdout == ""
    assert "no board yet" in done.stderr
