"""Forged requests, guesses and old cookies are refused, and pages cannot be framed."""

import dataclasses
import json
import re

import pytest

from socialpub.accounts import api_keys
from socialpub.accounts import sign_in as sign_in_accounts
from socialpub.core.settings.schema import DashboardSection
from socialpub.runtime import Runtime
from socialpub.web.http.app import create_app
from socialpub.web.routes import DASHBOARD
from tests.integration.dashboard.conftest import PASSWORD
from tests.integration.uploads.caller import Caller, Reply
from tests.samples import media
from tests.support.tab import Attachment, Tab, multipart, sign_in

FORM = "application/x-www-form-urlencoded"
OPEN = {"/login", "/setup"}
STREAMS = {"/compose", "/posts/{postId}/edit", "/compose/uploads", "/compose/uploads/complete"}
"""The actions that read the body themselves."""


def actions() -> list[str]:
    """Return the address of every action."""
    return [filled(route.path) for route in DASHBOARD if "POST" in (route.methods or ())]


def filled(path: str) -> str:
    return re.sub(r"\{[^}]+\}", "0190c5c2-7c1b-7a55-9f0e-3b1f0c2d4e5f", path)


def sessions(rt: Runtime) -> int:
    return len(sign_in_accounts.list_sessions(rt, rt.db))


@pytest.mark.parametrize("path", [path for path in actions() if path not in OPEN])
def test_every_action_needs_a_form_token(owner: Tab, rt: Runtime, path: str) -> None:
    before = rt.db.data_version
    for body in (b"", b"csrf=", b"csrf=" + b"0" * 80, b"name=x&csrf=%F0%9F%98%80"):
        reply = owner.ask("POST", path, body)
        assert reply.status in (403, 415), (path, body, reply.status)
    assert rt.db.data_version == before
    assert owner.open("/system").heading == "System"


@pytest.mark.parametrize("path", sorted(map(filled, STREAMS)))
def test_forms_with_files_and_requests_of_scripts_need_a_token(owner, rt, path):
    """Nothing is stored without a token, and another site is refused before the body is read."""
    owner.open("/system")
    token = owner.page.token
    picture = Attachment("a.jpg", b"\xff\xd8\xff" + b"0" * 5000, "image/jpeg")
    text = json.dumps({"fileName": "a.jpg", "mimeType": "image/jpeg", "fileSize": 5}).encode()
    before = rt.db.data_version

    def refused(reply: Reply) -> None:
        assert reply.status == 403, (reply.status, reply.body)
        assert rt.db.data_version == before
        assert [one for one in rt.files.root.rglob("*") if one.is_file()] == []

    for fields in (
        [],
        [("csrf", "0" * 80)],
        [("media", picture), ("csrf", token)],
        [("do", "publish"), ("csrf", token)],
    ):
        body, content_type = multipart([*fields, ("body", "Forged"), ("media", picture)])
        refused(owner.ask("POST", path, body, {"content-type": content_type, "content-length": str(len(body))}))
    if path.startswith("/compose/uploads"):
        for given in ({}, {"x-csrf-token": "0" * 80}):
            refused(owner.ask("POST", path, text, {"content-type": "application/json", **given}))
    body, content_type = multipart([("csrf", token), ("body", "Forged"), ("media", picture)])
    stolen = {"x-csrf-token": token, "origin": "https://evil.example"}
    for given, kind in ((body, content_type), (text, "application/json"), (b"x", "text/plain")):
        reply = owner.ask("POST", path, given, {"content-type": kind, **stolen})
        assert b"another site" in reply.body
        refused(reply)


@pytest.mark.parametrize("path", [path for path in actions() if path not in OPEN])
def test_every_action_needs_a_session(stranger, owner, path):
    stranger.open("/login")
    token = stranger.page.token
    body = f"csrf={token}".encode()
    reply = stranger.ask("POST", path, body)
    assert (reply.status, reply.headers["location"].endswith("login")) == (303, True)
    reply = stranger.ask("POST", path, body, {"hx-request": "true"})
    assert reply.status == 401, "a script learns that its session is over"


def test_another_site_s_form_does_nothing(owner, rt):
    """The Origin header protects even against a stolen token."""
    owner.open("/")
    form = owner.page.form_of(owner.page.button("Sign out"))
    body = "&".join(f"{name}={value}" for name, value in owner.fields_of(form)).encode()
    for origin in (
        "https://evil.example",
        "null",
        "http://testserver.evil.example",
        "http://testserver:81",
        "http://[",
    ):
        reply = owner.ask("POST", "/logout", body, {"origin": origin})
        assert (reply.status, b"another site" in reply.body) == (403, True), origin
    quiet = Tab(owner.caller.app)
    quiet.caller, quiet.cookies = owner.caller, owner.cookies
    headers = {"cookie": "; ".join(f"{k}={v}" for k, v in owner.cookies.items()), "content-type": FORM}
    reply = owner.caller.ask("POST", "/logout", body, {**headers, "sec-fetch-site": "cross-site"})
    assert reply.status == 403
    assert sessions(rt) == 1
    assert owner.press("Sign out").heading == "Sign in"
    assert sessions(rt) == 0


def test_a_token_is_not_valid_in_another_browser(owner, stranger, rt):
    sign_in(stranger, PASSWORD)
    stranger.open("/")
    token = stranger.fields_of(stranger.page.form_of(stranger.page.button("Sign out")))[0][1]
    reply = owner.ask("POST", "/logout", f"csrf={token}".encode())
    assert reply.status == 403
    assert "This form has expired" in reply.body.decode()
    assert sessions(rt) == 2


def test_a_form_from_before_a_new_sign_in_is_refused(owner):
    owner.open("/")
    body = f"csrf={owner.fields_of(owner.page.form_of(owner.page.button('Sign out')))[0][1]}".encode()
    owner.press("Sign out")
    sign_in(owner, PASSWORD)
    assert owner.ask("POST", "/logout", body).status == 403


@pytest.mark.parametrize("token", ["", "0", "x" * 43, "é" * 43, "' OR 1=1 --", "a" * 9000])
def test_a_guessed_session_is_not_valid(owner, stranger, token):
    name = next(name for name in owner.cookies if "session" in name)
    reply = stranger.ask("GET", "/system", headers={"cookie": f"{name}={token}"})
    assert reply.status == 303


def test_a_session_that_was_planted_is_not_taken_over(app, rt, password_hash):
    """Session fixation: sign-in always creates a new session."""
    rt.write(sign_in_accounts.set_password, password_hash)
    with Tab(app) as browser, Tab(app) as thief:
        planted = {f"socialpub_session_{rt.instance_id[:8]}": "planted", f"socialpub_visitor_{rt.instance_id[:8]}": "v"}
        browser.cookies = dict(planted)
        assert sign_in(browser, PASSWORD).heading == "Overview"
        thief.cookies = planted
        assert thief.open("/").heading == "Sign in"


def test_the_password_form_needs_a_token(owner, stranger, rt):
    body = f"password={PASSWORD.replace(' ', '+')}".encode()
    assert stranger.ask("POST", "/login", body).status == 403
    stranger.open("/login")
    token = stranger.page.token
    reply = stranger.ask("POST", "/login", body + f"&csrf={token}".encode(), {"origin": "https://evil.example"})
    assert reply.status == 403
    assert sessions(rt) == 1


def test_every_page_forbids_frames_inline_code_and_foreign_hosts(owner):
    for path in ("/", "/system", "/nowhere", "/compose", "/posts", "/calendar"):
        reply = owner.ask("GET", path)
        if path == "/nowhere":
            assert reply.status == 404
        policy = dict(part.strip().partition(" ")[::2] for part in reply.headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert policy["frame-ancestors"] == "'none'"
        if reply.status == 200:
            assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
            assert policy["base-uri"] == "'none'"
            assert reply.headers["x-frame-options"] == "DENY"
            assert reply.headers["cache-control"] == "no-store"
            assert reply.headers["referrer-policy"] == "same-origin"
        assert reply.headers["x-content-type-options"] == "nosniff"


def test_no_page_holds_inline_code_or_addresses_of_other_hosts(owner):
    for path in ("/", "/system", "/login"):
        page = owner.open(path)
        for element in page.root.all():
            assert not any(name == "style" or name.startswith("on") for name in element.attributes), element.attributes
            if element.tag in ("script", "style"):
                assert element.raw_text.strip() == ""
            for name in ("src", "href", "action"):
                assert not element.attributes.get(name, "").startswith(("http:", "https:", "//", "/", "javascript:"))


def test_two_pages_never_hold_the_same_token(owner):
    """A constant token could be guessed from the length of compressed pages."""
    tokens = [one.attributes["value"] for _ in range(2) for one in owner.open("/system").root.all("input")
              if one.attributes.get("name") == "csrf"]  # fmt: skip
    assert len(set(tokens)) == len(tokens) > 2


def test_a_disabled_dashboard_has_no_pages(rt):
    off = rt.settings.model_copy(update={"dashboard": DashboardSection(enabled=False)})
    with Tab(create_app(dataclasses.replace(rt, settings=off))) as browser:
        for path in ("/login", "/setup", "/system", "/posts"):
            assert browser.ask("GET", path).status == 404
        assert "API reference" in browser.open("/").root.text


def test_media_that_share_the_dashboard_s_origin_can_do_nothing_there(owner, rt, tmp_path):
    """A stored file runs no script, and a browser never shows it as a page."""
    picture = media.jpeg(tmp_path / "a.jpg").read_bytes()
    with Caller(owner.caller.app, rt.write(api_keys.create, "script")) as caller:
        artifact = caller.upload(picture, "image/jpeg", "a.jpg")
    reply = owner.ask("GET", artifact["url"])
    assert reply.status == 200
    assert reply.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert (reply.headers["x-content-type-options"], reply.headers["content-type"]) == ("nosniff", "image/jpeg")
