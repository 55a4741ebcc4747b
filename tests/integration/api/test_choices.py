"""`GET /profiles/{id}/choices`: what a post can choose for an account now (contract 10.1.1, 10.1.2)."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from socialpub.accounts import api_keys, choices, profiles
from socialpub.db.tables import waits
from socialpub.providers.pinterest import Pinterest
from socialpub.providers.pinterest.boards import Board
from socialpub.providers.registry import OPTIONS
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.integration.api.client import Client
from tests.integration.uploads.caller import Reply
from tests.support.sandbox_http import connect_pinterest, connect_tiktok, connect_x

CONNECT = {"x": connect_x, "tiktok": connect_tiktok, "pinterest": connect_pinterest}
LEVELS = ["FOLLOWER_OF_CREATOR", "MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY"]


@pytest.fixture
def appliance_options(sandbox_options: dict[str, Any]) -> dict[str, Any]:
    return sandbox_options


@pytest.fixture
def pins(rt: Runtime, world: World) -> str:
    return connect_pinterest(rt, world)


def ask(client: Client, profile: str, query: str = "", key: str = "") -> Reply:
    return client.send("GET", f"/profiles/{profile}/choices{query}", key=key)


def options_of(client: Client, profile: str, query: str = "") -> dict[str, dict[str, Any]]:
    return {option["key"]: option for option in ask(client, profile, query).data["options"]}


def values_of(option: dict[str, Any]) -> list[Any]:
    return [one["value"] for one in option["values"]]


# --- the choices -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("network", CONNECT)
def test_every_option_of_the_network_is_listed_with_its_type(client, rt, world, network):
    profile = CONNECT[network](rt, world)
    found = ask(client, profile).data
    assert (found["profileId"], found["provider"]) == (profile, network)
    table = {option.name: option for option in OPTIONS[network]}
    assert [option["key"] for option in found["options"]] == list(table)
    schema = client.send("GET", "/openapi-docs", key=None).json()["components"]["schemas"]
    documented = next(one for name, one in schema.items() if name.lower() == f"{network}options")["properties"]
    for option in found["options"]:
        assert option["type"] == documented[option["key"]]["type"]
        assert option["description"] == table[option["key"]].meaning
        assert option.get("default") == table[option["key"]].default
    draft = {"post": {"body": "a"}, "profiles": [profile]}
    problems = client.send("POST", "/posts/validate", draft).data["deliveries"][0]["problems"]
    needed = {one["path"][2] for one in problems if one["path"][:2] == ["providerOptions", network]}
    assert {option["key"] for option in found["options"] if option["required"]} == needed


def test_values_of_x_have_labels_and_the_owners_default(client, rt, world):
    profile = connect_x(rt, world)
    rt.write(profiles.set_options, profile, {"replySettings": "following", "madeWithAi": "false"})
    options = options_of(client, profile)
    assert options["replySettings"]["values"][1] == {"value": "following", "label": "People the author follows"}
    assert (options["replySettings"]["default"], options["replySettings"]["stored"]) == ("everyone", "following")
    assert (options["madeWithAi"]["stored"], "values" in options["madeWithAi"]) == (False, False)
    assert "notes" not in ask(client, profile).data
    assert world.x.counts == {}, "X has nothing to ask for"


def test_tiktok_offers_what_the_account_allows_now(client, rt, world):
    world.tiktok.add_account("quiet", "Quiet Owner", private=True, comment_disabled=True, max_duration=180)
    profile = connect_tiktok(rt, world, "quiet")
    found, options = ask(client, profile).data, options_of(client, profile)
    assert values_of(options["privacyLevel"]) == LEVELS
    assert values_of(options["disableComment"]) == [True]
    assert "The account's settings turn comments off." in found["notes"]
    assert "A video may last at most 180 seconds." in found["notes"]
    assert any("has not audited this app" in note for note in found["notes"])
    rt.write(profiles.set_options, profile, {"mode": "draft"})
    assert options["privacyLevel"]["required"]
    assert not options_of(client, profile)["privacyLevel"]["required"], "TikTok's app asks for the level of a draft"
    assert world.tiktok.counts["creator_info"] == 1


def test_pinterest_lists_boards_and_the_sections_of_one_board(client, rt, world, transport, pins):
    sectioned = next(one for one in world.pinterest.boards.values() if one.sections)
    options = options_of(client, pins)
    assert sectioned.id in values_of(options["boardId"])
    assert "values" not in options["boardSectionId"]
    for _ in range(2):
        options = options_of(client, pins, f"?boardId={sectioned.id}")
        assert {one["value"]: one["label"] for one in options["boardSectionId"]["values"]} == sectioned.sections
    assert len(transport.called) == 2, "the boards and the sections are asked for once"


@pytest.mark.parametrize("given", [{}, {"boardId": None}, {"boardId": "Summer"}, {"board_id": 5}])
def test_a_missing_or_wrong_board_leads_here_and_is_reported_once(client, pins, given):
    post = {"post": {"body": "Soup"}, "profiles": [pins], "providerOptions": {"pinterest": given}}
    (checked,) = client.send("POST", "/posts/validate", post).data["deliveries"]
    (problem,) = [one for one in checked["problems"] if one["path"][0] == "providerOptions"]
    assert "GET /api/v1/profiles/{id}/choices" in problem["message"]


@pytest.mark.parametrize("given", [{}, {"privacyLevel": "PUBLIC"}])
def test_a_missing_or_wrong_privacy_level_is_reported_once(client, rt, world, given):
    post = {"post": {"body": "Soup"}, "profiles": [connect_tiktok(rt, world)], "providerOptions": {"tiktok": given}}
    (checked,) = client.send("POST", "/posts/validate", post).data["deliveries"]
    assert [one["path"][-1] for one in checked["problems"] if one["path"][0] == "providerOptions"] == ["privacyLevel"]


def test_a_list_ends_after_1000_values_and_says_so(client, monkeypatch, pins):
    boards = [Board(str(1000 + n), f"Board {n}", "SECRET" if n == 0 else "PUBLIC") for n in range(1002)]
    monkeypatch.setattr(Pinterest, "list_boards", lambda *_: boards)
    monkeypatch.setattr(Pinterest, "list_sections", lambda *_: [])
    found = ask(client, pins).data
    [listed] = [option["values"] for option in found["options"] if option["key"] == "boardId"]
    assert (len(listed), listed[0]) == (1000, {"value": "1000", "label": "Board 0 (secret)"})
    assert found["notes"] == ["boardId lists the first 1000 of 1002 values."]
    assert values_of(options_of(client, pins, "?boardId=2001")["boardSectionId"]) == [], "a board beyond the list"


# --- refusals --------------------------------------------------------------------------------------------------------


def test_refusals_have_the_order_of_the_contract(client, rt, world, pins):
    x = connect_x(rt, world)
    key = rt.write(api_keys.create, "x", scope="read", providers=("x",))
    assert ask(client, x, key=key).status == 200, "a read key is enough"
    assert ask(client, pins, "?boardId=1&color=red", key=key).status == 404
    rt.write(profiles.disconnect, x)
    for query, path in (("?boardId=1", "boardId"), ("?board=1", "board")):
        refused = ask(client, x, query)
        assert (refused.status, refused.paths()) == (400, [[path]])
    assert "Connect X" in ask(client, x).json()["detail"]
    assert ask(client, x).status == 409
    unknown = ask(client, pins, "?boardId=404")
    assert (unknown.status, unknown.paths()) == (400, [["boardId"]])


def test_an_account_to_connect_again_is_a_conflict_that_says_how(client, rt, world, transport, pins):
    world.pinterest.remove_access("demo")
    first = ask(client, pins)
    assert first.status == 409, "the question itself found that the consent has ended"
    assert profiles.get(rt.db, pins).status == "reauthRequired"
    transport.called.clear()
    again = ask(client, pins, "?boardId=1")
    assert (again.status, transport.called) == (409, [])
    for refused in (first, again):
        assert "ress “Reconnect” under Profiles in the dashboard, or run `socialpub admin" in refused.json()["detail"]


def test_a_network_that_does_not_answer_is_asked_again_after_a_minute(client, world, transport, clock, pins):
    world.pinterest.next("list_boards").times_out_before_effect()
    for _ in range(3):
        refused = ask(client, pins)
        assert (refused.status, refused.headers["retry-after"]) == (503, "60")
    assert transport.called == ["list_boards"]
    clock.forward(61)
    world.pinterest.next("list_boards").rate_limited(300)
    refused = ask(client, pins)
    assert refused.status == 503
    assert int(refused.headers["retry-after"]) >= 300


def test_held_queries_are_not_asked(client, rt, world, transport, pins):
    rt.db.write(lambda tx: waits.hold(tx, "pinterest", waits.QUESTIONS, "The app may not read.", None))
    rt.db.write(lambda tx: waits.hold(tx, "x", waits.QUESTIONS, "The app may not read.", None))
    refused = ask(client, pins)
    assert (refused.status, refused.headers["retry-after"]) == (503, str(waits.PROBE_SECONDS))
    assert transport.called == []
    assert ask(client, connect_x(rt, world)).status == 200, "X needs no query"


def test_boards_that_the_app_may_not_read_leave_the_other_options(client, world, pins):
    world.pinterest.next("list_boards").refuses("pinner_data")
    found = ask(client, pins, "?boardId=1").data
    assert "The boards could not be listed." in found["notes"][0]
    assert not [option for option in found["options"] if option["key"] == "boardId" and "values" in option]


# --- one question for all callers ------------------------------------------------------------------------------------


@pytest.fixture
def slow_boards(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, list[str]]]:
    """Pinterest lists no boards before the event is set."""
    answered, asked, listing = threading.Event(), [], Pinterest.list_boards

    def hangs(self: Pinterest, http: Any, token: str) -> list[Board]:
        asked.append(token)
        assert answered.wait(60)
        return listing(self, http, token)

    monkeypatch.setattr(Pinterest, "list_boards", hangs)
    yield answered, asked
    answered.set()


def test_callers_of_a_slow_network_share_one_question_and_block_nothing(client, rt, pins, slow_boards):
    answered, asked = slow_boards
    before = len(rt.db._connections)

    async def story() -> list[Reply]:
        path = f"/profiles/{pins}/choices"
        waiting = [asyncio.create_task(client.sending("GET", f"{path}?boardId={n}")) for n in range(50)]
        waiting += [asyncio.create_task(client.sending("GET", path)) for _ in range(50)]
        while not asked:
            await asyncio.sleep(0)
        assert (await client.sending("GET", f"/profiles/{pins}")).status == 200, "the loop is free"
        gone = waiting.pop()
        gone.cancel()
        await asyncio.wait({gone})
        assert not any(one.done() for one in waiting)
        assert len(rt.db._connections) <= before + 2
        answered.set()
        return await asyncio.gather(*waiting)

    replies = client.run(story())
    assert [reply.status for reply in replies] == [400] * 50 + [200] * 49
    assert len(asked) == 1


def test_questions_about_many_boards_occupy_one_thread(client, world, monkeypatch, pins):
    assert ask(client, pins).status == 200
    boards = [one.id for one in world.pinterest.boards_of("demo")]
    answered, asked = threading.Event(), []

    def hangs(_self: Pinterest, _http: Any, _token: str, board_id: str) -> list[Any]:
        asked.append(board_id)
        assert answered.wait(60)
        return []

    monkeypatch.setattr(Pinterest, "list_sections", hangs)

    async def story() -> list[Reply]:
        path = f"/profiles/{pins}/choices?boardId="
        waiting = [asyncio.create_task(client.sending("GET", path + board)) for board in boards * 2]
        while not asked or len(asyncio.all_tasks()) < 2 * len(boards) + 2:
            await asyncio.sleep(0)
        assert (await client.sending("GET", f"/profiles/{pins}/choices")).status == 200, "the boards are known"
        assert [thread.name for thread in threading.enumerate()].count("run-in-thread") == 1
        answered.set()
        return await asyncio.gather(*waiting)

    assert {reply.status for reply in client.run(story())} == {200}
    assert sorted(asked) == sorted(boards)


def test_a_caller_waits_8_seconds_and_the_next_one_gets_the_answer(client, monkeypatch, pins, slow_boards):
    answered, asked = slow_boards
    assert choices.TIMEOUT_SECONDS == 8
    monkeypatch.setattr(choices, "TIMEOUT_SECONDS", 0)
    for _ in range(3):
        refused = ask(client, pins)
        assert (refused.status, refused.headers["retry-after"]) == (503, "10")
    monkeypatch.setattr(choices, "TIMEOUT_SECONDS", 60)
    answered.set()
    assert ask(client, pins).status == 200
    assert len(asked) == 1
