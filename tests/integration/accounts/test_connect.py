"""Accounts are connected through the networks' own pages, and every other way back connects nothing."""

from contextlib import closing
from typing import Any

import pytest

from socialpub.accounts import consents, profiles, redirects, tokens, upkeep
from socialpub.accounts.connect import Connected
from socialpub.accounts.consents import UnknownState
from socialpub.accounts.redirects import WrongAddress, read_pasted_address
from socialpub.accounts.remedies import Surface
from socialpub.core.errors import InvalidRequest, NotFound, OperatorError
from socialpub.core.settings.schema import ProvidersSection
from socialpub.providers import registry
from socialpub.providers.auth import Identity
from socialpub.providers.auth import Tokens as Grant
from socialpub.providers.responses import NoAnswer, NotSent, Rejected
from socialpub.publishing.delivery import resume
from socialpub.runtime import CausedTask, NoWakeup, Runtime
from socialpub.sandbox import World
from tests.support.appliance import add_profile, open_appliance
from tests.support.consent_browser import Browser, query_of
from tests.support.queue_threads import background_tasks
from tests.support.scripted_network import ScriptedNetwork
from tests.support.select import select_all, select_one, select_value

HERE = "http://127.0.0.1:8000/oauth/x/callback"
NETWORKS = ("x", "tiktok", "pinterest")
ONE_LESS = {"x": "media.write", "tiktok": "video.upload"}
NOTHING_LEFT = {"x": ("tweet.write",), "tiktok": ("video.publish", "video.upload"), "pinterest": ("pins:write",)}


@pytest.fixture
def appliance_options(sandbox_options: dict[str, Any]) -> dict[str, Any]:
    return sandbox_options


@pytest.fixture
def browser(world: World) -> Browser:
    if world.pinterest.account_named("studio") is None:
        world.pinterest.add_account("studio")
    return Browser(world)


def rows(rt: Runtime) -> list[Any]:
    return select_all(rt.db, "SELECT * FROM profile ORDER BY created_at, id")


def connected(rt: Runtime, browser: Browser, network: str = "x", account: str = "demo", **how: Any) -> Connected:
    _, url = consents.begin(rt, network, **how)
    return consents.finish(rt, network, query_of(browser.decides(url, account)))


def failure_of(rt: Runtime, consent_id: str) -> str:
    outcome = consents.load_outcome(rt, consent_id)
    assert isinstance(outcome, OperatorError)
    return outcome.sentence


# --- the way it should go --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("network", NETWORKS)
def test_an_account_is_connected_by_its_owners_consent(rt, browser, network):
    begun, url = consents.begin(rt, network, "News")
    assert consents.load_outcome(rt, begun.id) is None
    back = browser.decides(url)
    assert back.startswith(f"http://127.0.0.1:8000/oauth/{network}/callback?")
    finished = consents.finish(rt, network, query_of(back))
    assert finished == consents.load_outcome(rt, begun.id)
    (profile,) = rows(rt)
    assert (profile["id"], profile["name"], profile["status"]) == (finished.profile_id, "News", "active")
    assert profile["provider"] == network
    assert not finished.missing
    assert not finished.revived
    assert tokens.load_fresh(rt, finished.profile_id)
    assert select_value(rt.db, "SELECT verifier FROM consent") == b"", "the verifier is used once"


def test_connecting_and_disconnecting_an_account_wake_their_tasks(rt, browser):
    woken, rt.wakeup = [], NoWakeup()
    rt.wakeup.run_soon = woken.append
    profile_id = connected(rt, browser).profile_id
    assert set(woken) == {CausedTask.ACCOUNT_DATA, CausedTask.AVATARS}
    woken.clear()
    rt.write(profiles.disconnect, profile_id)
    assert woken == [CausedTask.REVOCATION]
    with background_tasks(rt) as tasks:
        assert set(CausedTask) <= set(tasks.all)


# --- the ways it may go wrong ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("network", NETWORKS)
def test_a_denied_consent_connects_no_account_and_is_reported(rt, browser, network):
    begun, url = consents.begin(rt, network)
    with pytest.raises(OperatorError, match="did not give") as refused:
        consents.finish(rt, network, query_of(browser.decides(url, decision="deny")))
    assert f"socialpub admin connect-profile {network}" in str(refused.value.hint)
    assert failure_of(rt, begun.id) == refused.value.sentence
    assert rows(rt) == []


@pytest.mark.parametrize("network", NETWORKS)
def test_an_answer_works_once(rt, browser, network):
    begun, url = consents.begin(rt, network)
    query = query_of(browser.decides(url))
    finished = consents.finish(rt, network, query)
    with pytest.raises(OperatorError, match="already used: the account is connected"):
        consents.finish(rt, network, query)
    assert consents.load_outcome(rt, begun.id) == finished, "a reload of the page changes nothing"
    assert len(rows(rt)) == 1


def test_an_answer_that_comes_after_ten_minutes_is_too_late(rt, browser, clock):
    begun, url = consents.begin(rt, "x")
    clock.forward(599)
    query = query_of(browser.decides(url))
    assert consents.load_outcome(rt, begun.id) is None
    clock.forward(1)
    with pytest.raises(OperatorError, match="more than ten minutes"):
        consents.finish(rt, "x", query)
    assert "did not return" in failure_of(rt, begun.id)
    assert rows(rt) == []


def test_an_answer_with_an_unknown_state_connects_no_account(rt, browser, world):
    begun, url = consents.begin(rt, "x")
    query = query_of(browser.decides(url))
    for state in ("", "somebody-else's", query["state"][:-1]):
        with pytest.raises(UnknownState):
            consents.finish(rt, "x", {**query, "state": state})
    with pytest.raises(UnknownState):
        consents.finish(rt, "x", {"code": query["code"]})
    with pytest.raises(UnknownState, match="access_denied"):
        consents.finish(rt, "x", {"error": "access_denied"})
    with pytest.raises(UnknownState) as crafted:
        consents.finish(rt, "x", {"error": "Call 555-0100 now"})
    assert "555" not in crafted.value.message
    assert world.x.counts["token"] == 0
    assert consents.load_outcome(rt, begun.id) is None, "the attempt itself still waits"
    assert consents.finish(rt, "x", query)


def test_an_answer_for_one_network_is_none_for_another(rt, browser):
    query = query_of(browser.decides(consents.begin(rt, "x")[1]))
    with pytest.raises(UnknownState):
        consents.finish(rt, "tiktok", query)
    assert consents.finish(rt, "x", query)


def test_an_attempt_accepts_only_its_own_answer(rt, browser):
    (mine, _), (other, url) = consents.begin(rt, "x"), consents.begin(rt, "x")
    query = query_of(browser.decides(url))
    with pytest.raises(OperatorError, match="another attempt"):
        consents.finish(rt, "x", query, mine.id)
    assert consents.finish(rt, "x", query, other.id)
    assert consents.load_outcome(rt, mine.id) is None


def test_a_canceled_attempt_connects_no_account(rt, browser, world):
    begun, url = consents.begin(rt, "x")
    query = query_of(browser.decides(url))
    rt.write(consents.cancel, begun.id)
    with pytest.raises(OperatorError, match="canceled"):
        consents.finish(rt, "x", query)
    assert world.x.counts["token"] == 0


@pytest.mark.parametrize("network", NETWORKS)
def test_an_unexpected_account_is_refused_and_its_tokens_are_revoked(rt, browser, world, network):
    first = connected(rt, browser, network)
    before = dict(rows(rt)[0])
    begun, url = consents.begin(rt, network, profile_id=first.profile_id)
    with pytest.raises(OperatorError) as refused:
        consents.finish(rt, network, query_of(browser.decides(url, "studio")))
    said = refused.value.message.lower()
    assert "demo" in said
    assert "studio" in said
    assert [dict(row) for row in rows(rt)] == [before]
    assert world.networks[network].counts["revoke"] >= 1
    assert failure_of(rt, begun.id) == refused.value.sentence
    again = connected(rt, browser, network, profile_id=first.profile_id)
    assert again.profile_id == first.profile_id


def test_a_wrong_account_that_is_connected_itself_keeps_its_grant(rt, browser, world):
    demo, studio = connected(rt, browser), connected(rt, browser, account="studio")
    with pytest.raises(OperatorError, match="@studio"):
        connected(rt, browser, account="studio", profile_id=demo.profile_id)
    assert world.x.counts["revoke"] == 0, "one token taken back may end the whole grant"
    assert tokens.load_fresh(rt, studio.profile_id)


def test_a_paused_installation_revokes_no_tokens(rt, browser, world):
    demo = connected(rt, browser)
    rt.write(resume.pause)
    with pytest.raises(OperatorError, match="@studio"):
        connected(rt, browser, account="studio", profile_id=demo.profile_id)
    assert world.x.counts["revoke"] == 0


@pytest.mark.parametrize("network", ONE_LESS)
def test_a_consent_with_a_missing_scope_is_reported_at_once(rt, browser, network):
    begun, url = consents.begin(rt, network)
    back = browser.decides(url, without=[ONE_LESS[network]])
    finished = consents.finish(rt, network, query_of(back))
    assert len(finished.missing) == 1
    assert ONE_LESS[network] in finished.missing[0]
    assert consents.load_outcome(rt, begun.id) == finished


@pytest.mark.parametrize("network", NETWORKS)
def test_a_consent_that_does_not_allow_publishing_is_refused(rt, browser, network):
    _, url = consents.begin(rt, network)
    back = browser.decides(url, without=NOTHING_LEFT[network])
    with pytest.raises(OperatorError, match="do not allow publishing"):
        consents.finish(rt, network, query_of(back))
    assert rows(rt) == []


def test_a_remedy_fits_the_surface_where_the_attempt_started(rt, browser, world):
    world.x.add_account("other")
    first = connected(rt, browser, "x", "demo")
    _, url = consents.begin(rt, "x", profile_id=first.profile_id, surface=Surface.DASHBOARD)
    query = query_of(browser.decides(url, "other"))
    with pytest.raises(OperatorError, match="@demo was to be connected again, but X returned @other") as refused:
        consents.finish(rt, "x", query)
    assert str(refused.value.hint).endswith("To connect @other as well, press “Connect X” under Profiles.")
    attempt = consents.find_by_state(rt.db, "x", query)
    assert attempt is not None
    assert (attempt.door, attempt.expected_profile_id) == (Surface.DASHBOARD, first.profile_id)
    with pytest.raises(OperatorError, match="already used") as again:
        consents.finish(rt, "x", query)
    assert again.value.hint == "To start again, press “Connect X” under Profiles."


def test_no_profile_is_saved_when_the_account_cannot_be_identified(rt, browser, world):
    _, url = consents.begin(rt, "x")
    world.x.next("me").fails_with(503)
    with pytest.raises(OperatorError, match="could not be determined") as refused:
        consents.finish(rt, "x", query_of(browser.decides(url)))
    assert "Try again" in str(refused.value.hint)
    assert rows(rt) == []


def test_an_exchange_that_died_with_its_process_is_reported_as_interrupted(rt, browser, clock):
    begun, _ = consents.begin(rt, "x")
    rt.write(consents.spend, begun.id)
    clock.forward(300)
    assert consents.load_outcome(rt, begun.id) is None
    clock.forward(1)
    assert "interrupted" in failure_of(rt, begun.id)


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (Rejected("The code is spent.", status=400, reauth=True), "connect-profile x"),
        (Rejected("The secret is wrong.", status=401), r"\[providers.x\]"),
        (NotSent("api.x.com could not be reached"), "Try again"),
        (NoAnswer("X did not answer in time."), "Try again"),
    ],
)
def test_an_exchange_that_fails_says_what_to_do(rt, error, hint):
    network = ScriptedNetwork()
    network.auth.answers = [error]  # type: ignore[list-item]
    rt.providers["x"] = network
    begun, url = consents.begin(rt, "x")
    state = url.rpartition("state=")[2]
    with pytest.raises(OperatorError) as refused:
        consents.finish(rt, "x", {"state": state, "code": "the-code"})
    import re

    assert re.search(hint, str(refused.value.hint))
    assert failure_of(rt, begun.id) == refused.value.sentence


def test_a_profile_that_is_disconnected_while_it_is_connected_again_stays_so(rt):
    network = ScriptedNetwork()
    rt.providers["x"] = network
    profile = add_profile(rt)

    def disconnected_meanwhile(http: object, account: object, token: str) -> Identity:
        rt.write(profiles.disconnect, profile)
        return Identity("acct", "demo", None, None)

    network.auth.identify = disconnected_meanwhile  # type: ignore[method-assign]
    network.auth.answers = [Grant("access-1", "refresh-1", 7200)]
    _, url = consents.begin(rt, "x", profile_id=profile)
    with pytest.raises(OperatorError, match="disconnected"):
        consents.finish(rt, "x", {"state": url.rpartition("state=")[2], "code": "c"})
    assert [row["status"] for row in rows(rt)] == ["disconnected"]


# --- beginning -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("network", "keys"),
    [
        ("x", "client_id in [providers.x] is empty"),
        ("tiktok", "client_key and client_secret in [providers.tiktok] are empty"),
        ("pinterest", "client_id and client_secret in [providers.pinterest] are empty"),
    ],
)
def test_missing_app_credentials_are_reported_with_their_place(tmp_path, clock, network, keys):
    with closing(open_appliance(tmp_path, clock)) as bare, pytest.raises(OperatorError) as refused:
        consents.begin(bare, network)
    assert keys in refused.value.message
    assert f"http://127.0.0.1:8000/oauth/{network}/callback" in str(refused.value.hint)


def test_an_impossible_attempt_is_refused_before_the_browser_opens(rt, browser):
    profile = connected(rt, browser).profile_id
    with pytest.raises(NotFound):
        consents.begin(rt, "x", profile_id="019a4c8e-7c1b-7a55-9f0e-3b1f0c2d4e5f")
    with pytest.raises(OperatorError, match="not an account of TikTok"):
        consents.begin(rt, "tiktok", profile_id=profile)
    with pytest.raises(InvalidRequest):
        consents.begin(rt, "x", "two\nlines")
    rt.write(profiles.disconnect, profile)
    with pytest.raises(OperatorError, match="disconnected"):
        consents.begin(rt, "x", profile_id=profile)


def test_neither_state_nor_verifier_can_be_read_in_the_database(rt, browser):
    begun, url = consents.begin(rt, "x")
    state = query_of(url)["state"]
    row = select_one(rt.db, "SELECT * FROM consent")
    assert row is not None
    assert state.encode() not in b"".join(bytes(value) for value in row if isinstance(value, bytes))
    assert state not in repr([value for value in row if isinstance(value, str)])
    assert len(rt.secrets.open(row["verifier"], "consent", row["id"], "verifier")) == 64
    assert state not in repr(begun)


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:8000/oauth/x/callback?state=s%201&code=a%2Bb*!",
        " '?state=s%201&code=a%2Bb*!#_=_' \n",
        "state=s%201&code=a%2Bb*!",
        "127.0.0.1:8000/oauth/x/callback?state=s%201&code=a%2Bb*!",
        "https://127.0.0.1:8000/oauth/x/callback?state=s%201&code=a%2Bb*!",
    ],
)
def test_a_pasted_address_is_read_whole_or_in_part(text):
    """Browsers hide the scheme, and some of them change it."""
    assert read_pasted_address(text, HERE) == {"state": "s 1", "code": "a+b*!"}


@pytest.mark.parametrize("text", ["", "hello", "http://127.0.0.1:8000/oauth/x/callback", "state=s1"])
def test_a_pasted_text_that_is_no_redirect_address_is_refused(text):
    with pytest.raises(WrongAddress, match="not the address"):
        read_pasted_address(text, HERE)


@pytest.mark.parametrize(
    "place",
    [
        "http://evil.example/oauth/x/callback",
        "http://127.0.0.1:8001/oauth/x/callback",
        "http://127.0.0.1/oauth/x/callback",
        "http://127.0.0.1:8000/oauth/tiktok/callback",
        "http://127.0.0.1:8000/",
        "http://127.0.0.1:99999/oauth/x/callback",
        "http://[::1/oauth/x/callback",
        "javascript:alert(1)",
    ],
)
def test_an_address_of_another_host_or_path_is_refused(place):
    with pytest.raises(WrongAddress):
        read_pasted_address(f"{place}?state=s&code=c", HERE)


# --- the redirect address --------------------------------------------------------------------------------------------


def with_networks(rt: Runtime, **sections: dict[str, Any]) -> Runtime:
    """These values in the sections of these networks, whose addresses are the networks' own."""
    providers = ProvidersSection.model_validate(sections)
    rt.settings = rt.settings.model_copy(update={"providers": providers})
    rt.providers = registry.build(providers)
    return rt


@pytest.mark.parametrize(
    ("base_url", "network", "redirect_url", "remedy"),
    [
        ("http://127.0.0.1:8000", "x", "", None),
        ("http://localhost:8000", "x", "", 'Set redirect_url = "http://127.0.0.1:8000/oauth/x/callback"'),
        (
            "http://127.0.0.1:8000",
            "pinterest",
            "",
            'Set redirect_url = "http://localhost:8000/oauth/pinterest/callback"',
        ),
        ("http://box.lan", "tiktok", "", 'Set redirect_url = "http://127.0.0.1:8000/oauth/tiktok/callback"'),
        ("http://box.lan", "tiktok", "https://social.example.com/any", None),
        (
            "https://social.example.com/social",
            "tiktok",
            "http://box.lan/",
            "Remove redirect_url",
        ),
    ],
)
def test_a_refused_redirect_address_has_a_remedy_that_works(rt, base_url, network, redirect_url, remedy):
    with_networks(rt, **{network: {"redirect_url": redirect_url}})
    rt.settings = rt.settings.model_copy(update={"base_url": base_url})
    found = redirects.check(rt.settings, rt.providers[network])
    assert found is not None
    assert (found.remedy or "").startswith(remedy or "")
    assert (found.remedy is None) == (remedy is None)
    if remedy and remedy.startswith("Set"):
        with_networks(rt, **{network: {"redirect_url": remedy.split('"')[1]}})
        again = redirects.check(rt.settings, rt.providers[network])
        assert again is not None
        assert again.remedy is None


def test_only_an_address_of_this_appliance_brings_the_browser_back(rt):
    found = {}
    for address in ("", "http://localhost:8000/oauth/x/callback", "http://localhost:9000/oauth/x/callback"):
        with_networks(rt, x={"redirect_url": address})
        found[address] = redirects.returns_here(rt.settings, "x")
    assert list(found.values()) == [True, True, False]
    with_networks(rt, x={"redirect_url": "http://127.0.0.1:8000/oauth/x/callback"})
    rt.settings = rt.settings.model_copy(update={"base_url": "http://box.lan"})
    assert not redirects.returns_here(rt.settings, "x"), "the browser may run on another machine"


# --- going -----------------------------------------------------------------------------------------------------------


def test_a_revocation_does_not_end_a_new_connection(rt, browser, world):
    first = connected(rt, browser, "tiktok").profile_id
    rt.write(profiles.disconnect, first)
    connected(rt, browser, "tiktok")
    assert upkeep.revoke_disconnected(rt) == 1
    assert world.tiktok.counts["revoke"] == 0
