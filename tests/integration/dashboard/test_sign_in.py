"""Sign-in, sessions and the password."""

import asyncio
import threading

import pytest

from socialpub.accounts import sign_in as sign_in_accounts
from socialpub.accounts.sign_in import Purpose
from socialpub.core import commands
from socialpub.web.dashboard import sign_in as sign_in_dashboard
from socialpub.web.http.app import App, create_app
from tests.integration.dashboard.conftest import PASSWORD
from tests.support.tab import Tab, sign_in


def test_the_link_that_serve_prints_sets_the_first_password(rt, stranger):
    page = stranger.open("/")
    assert page.heading == "Set a password first"
    assert "Open the link in the output of socialpub serve" in page.text
    assert "socialpub admin set-password" in page.text

    link = f"/setup?token={rt.write(sign_in_accounts.create_link, Purpose.SET_UP)}"
    assert stranger.open(link).heading == "Set a password"
    page = stranger.press("Set password", {"Password": "short", "Repeat password": "short"})
    assert (page.status, "at least 10 characters" in page.text) == (400, True)
    page = stranger.press("Set password", {"Password": PASSWORD, "Repeat password": PASSWORD + "!"})
    assert "must be the same" in page.text
    page = stranger.press("Set password", {"Password": PASSWORD, "Repeat password": PASSWORD})
    assert (page.heading, page.role("status")) == ("Overview", "The password is set. This browser is signed in.")
    assert stranger.open("/").role("status") == ""  # said once

    with Tab(create_app(rt)) as other:
        page = other.open(link)
        assert (page.heading, "already set" in page.role("status")) == ("Sign in", True)
        assert other.open("/").heading == "Sign in"


def test_the_first_page_names_the_command_of_this_machine(stranger, monkeypatch):
    monkeypatch.setattr(commands, "manager", lambda: "podman")
    page = stranger.open("/")
    assert "Open the link in podman logs appliance" in page.text
    assert "socialpub admin set-password" in page.text
    monkeypatch.setattr(commands, "manager", lambda: "systemctl")
    page = stranger.open("/")
    assert "sudo socialpub admin set-password" in page.text
    assert "Open the link" not in page.text, "the output of a service is not visible"


def test_a_link_works_for_a_day(rt, stranger, clock):
    link = f"/setup?token={rt.write(sign_in_accounts.create_link, Purpose.SET_UP)}"
    clock.forward(86_399)
    assert stranger.open(link).heading == "Set a password"
    clock.forward(2)
    page = stranger.open(link)
    assert page.status == 403
    assert "older than one day" in page.role("alert")


def test_the_link_of_the_demo_signs_in_once(rt, stranger, app):
    link = f"/login?token={rt.write(sign_in_accounts.create_link, Purpose.SIGN_IN)}"
    assert stranger.open(link).heading == "Overview"
    with Tab(app) as other:
        assert other.open(link).status == 403


def test_guesses_of_links_are_limited(rt, stranger):
    rt.write(sign_in_accounts.create_link, Purpose.SIGN_IN)
    before = rt.db.data_version
    statuses = [stranger.ask("GET", f"/login?token={guess}").status for guess in range(100)]
    assert (statuses[0], statuses[-1]) == (403, 429)
    assert rt.db.data_version == before


def test_many_guesses_do_not_block_other_pages(owner, monkeypatch):
    """One thread hashes all passwords. Further strangers are refused, but known browsers are not."""
    sign_in_again(owner)
    released = threading.Event()
    monkeypatch.setattr(sign_in_accounts, "is_password", lambda *_: released.wait(60) and False)
    owner.open("/")
    known = "; ".join(f"{name}={value}" for name, value in owner.cookies.items())
    cookie = "; ".join(f"{name}={value}" for name, value in owner.cookies.items() if "device" not in name)
    body = f"password=x&csrf={owner.page.token}".encode()
    told = {"cookie": cookie, "accept": "text/html", "origin": "http://testserver"}

    async def story() -> tuple[int, list[int]]:
        form = {**told, "content-type": "application/x-www-form-urlencoded"}
        asking = owner.caller.asking
        guesses = [
            asyncio.create_task(asking("POST", "/login", body, {**form, "x-forwarded-for": f"203.0.113.{at}"}))
            for at in range(sign_in_dashboard.MAX_WAITING + 20)
        ]
        await asyncio.sleep(0)
        guesses.append(asyncio.create_task(asking("POST", "/login", body, {**form, "cookie": known})))
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(30):
                page = await asking("GET", "/system", headers=told)
        finally:
            released.set()
        return page.status, [reply.status for reply in await asyncio.gather(*guesses)]

    status, guesses = owner.caller.run(story())
    assert status == 200
    assert guesses == [403] * sign_in_dashboard.MAX_WAITING + [429] * 20 + [403]


def test_sign_in_returns_to_the_requested_page(owner, stranger):
    page = stranger.open("/system?x=1")
    assert (page.heading, page.path) == ("Sign in", "/login?next=/system%3Fx%3D1")
    page = stranger.press("Sign in", {"Password": PASSWORD})
    assert (page.heading, page.path) == ("System", "/system?x=1")
    assert stranger.open("/login").heading == "Overview"


@pytest.mark.parametrize("next_page", ["https://evil.example", "//evil.example", "/\\evil.example", "/a//b", "evil"])
def test_sign_in_never_redirects_to_another_site(owner, stranger, next_page):
    page = stranger.press("Sign in", {"Password": PASSWORD}, on=f"/login?next={next_page}")
    assert (page.heading, page.path) == ("Overview", "/")


def test_ten_wrong_passwords_block_sign_in_for_a_while(owner, stranger, clock):
    for _ in range(10):
        page = sign_in(stranger, "wrong")
        assert (page.status, "password is wrong" in page.role("alert")) == (403, True)
    assert "set-password</code>" in page.html
    assert "`" not in page.text
    page = sign_in(stranger, PASSWORD)
    assert page.status == 429
    assert int(page.reply.headers["retry-after"]) <= 900
    assert "Try again in 15 minutes." in page.role("alert")
    assert owner.open("/").heading == "Overview"  # who is in stays in
    clock.forward(901)
    assert sign_in(stranger, PASSWORD).heading == "Overview"


def guess_ten_times(browser: Tab) -> None:
    assert [sign_in(browser, "wrong").status for _ in range(10)] == [403] * 10


def signs_in_wrongly(app: App, address: str, times: int = 1) -> None:
    with Tab(app, headers={"x-forwarded-for": address}) as stranger:
        for _ in range(times):
            assert sign_in(stranger, "a guess").status in (403, 429)


def failures(owner: Tab) -> list[str]:
    entries = owner.open("/audit?kind=session").root.all("ol")[0].all("li")
    return [one.text.partition(" ·")[0] for one in entries if "rong password" in one.text]


def test_the_audit_log_has_the_addresses_of_sign_ins_and_of_failed_ones(owner, app, clock):
    signs_in_wrongly(app, "192.0.2.7", times=12)
    signs_in_wrongly(app, "2001:db8::7", times=2)
    by = "(Test browser). a browser that is not signed in"
    assert failures(owner) == [
        f"Wrong password from 2001:db8::/64 {by}",
        f"Refused to sign in after ten wrong passwords from 192.0.2.7 {by}",
        f"Wrong password from 192.0.2.7 {by}",
    ]
    assert "Signed in from 127.0.0.1 (Test browser)" in owner.page.text
    clock.forward(3700)
    signs_in_wrongly(app, "192.0.2.7")
    assert len(failures(owner)) == 4


def test_guesses_from_many_addresses_keep_the_audit_log_small(owner, app, rt, monkeypatch):
    monkeypatch.setattr(sign_in_accounts, "MAX_FAILURE_ENTRIES", 3)
    for number in range(8):
        signs_in_wrongly(app, f"192.0.2.{number}")
    found = failures(owner)
    assert len(found) == 4
    assert found[0].startswith("Wrong password from more IP addresses, which are not listed.")
    before = rt.db.data_version
    signs_in_wrongly(app, "192.0.2.1")
    signs_in_wrongly(app, "192.0.2.99")
    assert rt.db.data_version == before, "the writer is left alone"


def test_a_stranger_at_the_same_address_never_locks_out_a_known_browser(owner, stranger):
    """Behind an untrusted proxy, all callers have one address."""
    sign_in_again(owner)
    owner.press("Sign out")
    assert [sign_in(stranger, "wrong").status for _ in range(11)] == [403] * 10 + [429]
    assert sign_in(owner, "a typing error").status == 403
    assert sign_in(owner, PASSWORD).heading == "Overview"
    assert sign_in(stranger, PASSWORD).status == 429, "the owner's sign-in forgives the stranger nothing"
    owner.open("/system")
    new = {"New password": "another long one", "Repeat new password": "another long one"}
    assert "changed" in owner.press("Change password", {"Current password": PASSWORD, **new}).role("status")
    owner.press("Sign out")
    assert sign_in(owner, "another long one").heading == "Overview", "the browser that changed it is still known"


def test_a_known_browser_has_ten_wrong_passwords_of_its_own(owner, stranger, clock):
    sign_in_again(owner)
    owner.press("Sign out")
    guess_ten_times(owner)
    page = sign_in(owner, PASSWORD)
    assert (page.status, "in this browser" in page.role("alert")) == (429, True)
    assert int(page.reply.headers["retry-after"]) <= 900
    assert sign_in(stranger, PASSWORD).heading == "Overview", "its count is not that of its address"
    clock.forward(901)
    assert sign_in(owner, PASSWORD).heading == "Overview"


@pytest.mark.parametrize("forged", ["", "nonsense", f"{'A' * 24}.{'A' * 43}", "id of the owner"])
def test_a_forged_cookie_does_not_make_a_browser_known(owner, stranger, forged):
    name, value = device_cookie(sign_in_again(owner))
    if forged == "id of the owner":
        forged = f"{value.partition('.')[0]}.{'A' * 43}"
    guess_ten_times(stranger)
    stranger.cookies[name] = forged
    assert sign_in(stranger, PASSWORD).status == 429


def test_the_cookie_of_a_known_browser_is_valid_only_in_its_installation(owner, stranger, rt):
    name, value = device_cookie(sign_in_again(owner))
    guess_ten_times(stranger)
    stranger.cookies[name] = value
    assert sign_in(stranger, "wrong").status == 403, "here it counts"
    instance, rt.instance_id = rt.instance_id, "another-installation"
    stranger.cookies[name.replace(instance[:8], "another-")] = value
    assert sign_in(stranger, "wrong").status == 429


def test_using_an_older_session_makes_its_browser_known(owner, clock):
    assert not any("device" in name for name in owner.cookies)
    clock.forward(601)
    owner.open("/")
    assert any("device" in name for name in owner.cookies)


def test_the_cookie_of_a_known_browser_is_not_a_session_and_is_http_only(owner, app, stranger):
    name, value = device_cookie(sign_in_again(owner))
    stranger.cookies[name] = value
    assert stranger.open("/").heading == "Sign in"
    token = owner.open("/login?next=/").root.all("input")[0].attributes["value"]
    reply = owner.ask("POST", "/login", f"csrf={token}&password={PASSWORD.replace(' ', '+')}".encode())
    (cookie,) = [one for one in reply.cookies if "device" in one]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=34560000"))
    assert value.partition(".")[0] in cookie, "a known browser stays the same"
    with Tab(app, headers={"x-forwarded-proto": "https", "origin": "https://testserver"}) as browser:
        sign_in(browser, PASSWORD)
        assert any(one.startswith("__Host-socialpub_device_") for one in browser.cookies)


def sign_in_again(browser: Tab) -> Tab:
    browser.press("Sign out")
    assert sign_in(browser, PASSWORD).heading == "Overview"
    return browser


def device_cookie(browser: Tab) -> tuple[str, str]:
    (found,) = [(name, value) for name, value in browser.cookies.items() if "device" in name]
    return found


def test_a_session_survives_a_restart_and_ends_when_it_is_not_used(owner, rt, clock):
    owner.caller.app = create_app(rt)
    assert owner.open("/").heading == "Overview"
    for _ in range(3):
        clock.forward(29 * 86_400)
        assert owner.open("/").heading == "Overview"
    clock.forward(30 * 86_400 + 1)
    assert owner.open("/").heading == "Sign in"


def test_signing_out_ends_a_stolen_session(owner):
    stolen = dict(owner.cookies)
    assert owner.press("Sign out").heading == "Sign in"
    assert not any("session" in name for name in owner.cookies)
    owner.cookies = stolen
    assert owner.open("/").heading == "Sign in"


def test_signing_out_clears_what_the_browser_stored(owner):
    form = owner.page.form_of(owner.page.button("Sign out"))
    reply = owner.ask("POST", "/logout", f"csrf={owner.fields_of(form)[0][1]}".encode())
    assert (reply.status, reply.headers["clear-site-data"]) == (303, '"cache"')
    assert "clear-site-data" not in owner.ask("GET", "/login").headers


def test_a_long_address_redirects_to_sign_in_without_a_return_address(owner):
    owner.cookies.clear()
    usual = owner.ask("GET", "/posts?search=sea")
    assert usual.headers["location"].endswith("login?next=/posts%3Fsearch%3Dsea")
    long = owner.ask("GET", "/posts?" + "a%00" * 7000)
    assert (long.status, long.headers["location"]) == (303, "./login")


def test_another_browser_is_listed_and_can_be_ended(owner, app):
    with Tab(app, headers={"user-agent": "<b>Phone</b>"}) as phone:
        sign_in(phone, PASSWORD)
        page = owner.open("/system")
        assert "<b>Phone</b>" in page.text  # as text
        assert "(this browser)" in page.text
        page = owner.press("End session")
        assert "ended" in page.role("status")
        assert phone.open("/").heading == "Sign in"
    assert owner.open("/").heading == "Overview"


def test_another_password_ends_every_other_session(owner, stranger):
    sign_in(stranger, PASSWORD)
    before = dict(owner.cookies)
    owner.open("/system")
    new = {"New password": "another long one", "Repeat new password": "another long one"}
    page = owner.press("Change password", {"Current password": "wrong", **new})
    assert (page.status, "not the current password" in page.text) == (400, True)
    page = owner.press("Change password", {"Current password": PASSWORD, **new})
    assert "changed" in page.role("status")
    assert owner.open("/").heading == "Overview"
    assert stranger.open("/").heading == "Sign in"
    stranger.cookies = before
    assert stranger.open("/").heading == "Sign in"
    assert sign_in(stranger, PASSWORD).status == 403
    assert sign_in(stranger, "another long one").heading == "Overview"


def test_a_session_is_not_valid_in_another_installation(owner, rt):
    rt.instance_id = "another-installation"
    name = next(name for name in owner.cookies if "session" in name)
    owner.cookies["socialpub_session_another-"[:26]] = owner.cookies[name]
    assert owner.open("/").heading == "Sign in"


def test_over_https_the_cookie_is_bound_to_it(rt, app, password_hash):
    rt.write(sign_in_accounts.set_password, password_hash)
    with Tab(app, headers={"x-forwarded-proto": "https", "origin": "https://testserver"}) as browser:
        sign_in(browser, PASSWORD)
        name = next(name for name in browser.cookies if "session" in name)
        assert name.startswith("__Host-")
        reply = browser.ask("GET", "/")
        assert reply.status == 200
    with Tab(app) as browser:
        browser.open("/login")
        token = browser.page.token
        reply = browser.ask("POST", "/login", f"csrf={token}&password={PASSWORD.replace(' ', '+')}".encode())
        (cookie,) = [one for one in reply.cookies if "session" in one]
        assert all(part in cookie for part in ("HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=2592000"))
        assert "Secure" not in cookie
