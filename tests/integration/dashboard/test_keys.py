"""API keys are created, shown once and revoked. Keys of a restored backup are kept or revoked."""

from datetime import timedelta

import pytest

from socialpub.accounts import api_keys
from socialpub.db.tables import access_rows, audit_log
from socialpub.runtime import Runtime
from socialpub.web.http.app import App
from tests.integration.uploads.caller import Caller
from tests.support import curl_line
from tests.support.appliance import add_profile
from tests.support.copies import become_restored
from tests.support.tab import Page

MARKUP = "<img src=x onerror=alert(1)>"


def shown_key(page: Page) -> str:
    return page.by_id("key").attributes["value"]


def status_of_call(app: App, key: str, method: str = "GET") -> int:
    with Caller(app, key) as caller:
        return (caller.get("/profiles") if method == "GET" else caller.post("/posts", {})).status


def test_a_new_key_works_and_is_shown_once(owner, app, rt):
    assert "No keys yet" in owner.open("/keys").text
    page = owner.press("Create key", {"Name": "n8n"})
    assert (page.status, page.heading) == (200, "Key created")
    assert page.reply.headers["cache-control"] == "no-store"
    assert page.reply.cookies == ()
    key = shown_key(page)
    assert key not in page.url
    assert (status_of_call(app, key), status_of_call(app, key, "POST")) == (200, 400)
    listed = owner.open("/keys")
    assert "n8n" in listed.text
    assert key not in listed.html
    assert key.partition("_")[2].partition("_")[2] not in "".join(map(str, audit_log.load_page(rt.db).entries))


def test_the_curl_command_works_unchanged(owner, app):
    line = owner.press("Create key", {"Name": "shell"}, on="/keys").by_id("line")
    call = curl_line.read(line.text, {"KEY": "unused"})
    with Caller(app, "") as caller:
        assert caller.ask(call.method, call.target, b"", call.headers).status == 200


def test_the_curl_command_has_the_address_of_the_browser(app, owner):
    owner.origin = "http://192.168.1.5:8000"
    line = owner.press("Create key", {"Name": "LAN"}, on="/keys").by_id("line")
    assert line.text.startswith("curl http://192.168.1.5:8000/api/v1/profiles ")


def test_a_reload_creates_no_second_key_and_does_not_show_the_first_again(owner, rt):
    owner.open("/keys")
    form = owner.page.form_of(owner.page.button("Create key"))
    fields = [(name, value) for name, value in owner.fields_of(form) if name != "name"] + [("name", "once")]
    first = owner.send(form, fields)
    key = shown_key(first)
    again = owner.send(form, fields)
    assert again.status == 409
    assert "shown only once" in again.role("alert")
    assert key not in again.html
    assert [one.name for one in api_keys.list_all(rt.db)] == ["once"]


def test_the_limits_of_a_key_are_shown_and_enforced(owner, app, rt):
    mine = add_profile(rt, "x", "one", name="Kiln & Co")
    add_profile(rt, "x", "two", name="Another")
    add_profile(rt, "tiktok", "three", name="Clips")
    owner.open("/keys")
    values = {"Name": "reader", "May write": False, "X": True, "#profiles": [mine], "Expires": "30"}
    page = owner.press("Create key", values)
    assert "It may only read, only for profiles on X, only for “Kiln & Co”, until" in page.text.replace(" ,", ",")
    with Caller(app, shown_key(page)) as caller:
        assert [one["id"] for one in caller.get("/profiles").data] == [mine]
        assert caller.post("/posts", {}).status == 403
    (key,) = api_keys.list_all(rt.db)
    assert (key.scope, key.providers, key.profiles) == ("read", ["x"], [mine])
    assert "in 30 days" in owner.open("/keys").text


def test_a_key_expires_at_the_end_of_a_local_day(owner, app, rt, clock):
    owner.cookies["socialpub_zone"] = "America%2FNew_York"
    day = (rt.now() + timedelta(days=3)).strftime("%Y-%m-%d")
    owner.press("Create key", {"Name": "guest", "Expires": "date", "Last day": day}, on="/keys")
    (key,) = api_keys.list_all(rt.db)
    ends = (rt.now() + timedelta(days=4)).strftime("%Y-%m-%d")
    assert key.expires_at == f"{ends}T04:00:00.000Z"
    clock.forward(5 * 86400)
    owner.open("/login")
    assert "expired" in owner.open("/keys").text


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"Name": "  "}, "A key needs a name"),
        ({"Name": "x" * 101}, "A key needs a name"),
        ({"Name": "late", "Expires": "date", "Last day": "2020-01-01"}, "already be expired"),
        ({"Name": "odd", "Expires": "date", "Last day": "tomorrow"}, "must be a date"),
        ({"Name": "odd", "#networks": ["myspace"]}, "no provider"),
        ({"Name": "odd", "#profiles": ["stranger"]}, "no profile"),
        ({"Name": "agent", "May write": True, "Posts a day": "many"}, "must be a whole number"),
        ({"Name": "agent", "May write": True, "Posts a day": "0"}, "may publish 1 to 10,000 posts a day, not 0"),
        ({"Name": "agent", "Posts a day": "5"}, "may only read publishes nothing"),
    ],
)
def test_an_invalid_key_form_shows_the_error_at_the_field(owner, rt, values, reason, profile):
    page = owner.press("Create key", {"May write": False, **values}, on="/keys")
    assert page.status == 400
    assert reason in page.role("alert")
    assert reason in " ".join(one.text for one in page.root.all("small"))
    assert page.field("Name").attributes["value"] == values["Name"]
    assert ("checked" in page.field("May write").attributes) == ("May write" in values)
    assert api_keys.list_all(rt.db) == []
    emptied = {"Posts a day": "", "Expires": "", "Last day": "", "#networks": [], "#profiles": []}
    owner.press("Create key", {"Name": "right", **emptied})
    assert [one.name for one in api_keys.list_all(rt.db)] == ["right"]


def test_revoke_asks_first_and_ends_the_key_at_once(owner, app):
    key = shown_key(owner.press("Create key", {"Name": "old script"}, on="/keys"))
    assert status_of_call(app, key) == 200
    listed = owner.open("/keys")
    assert "1 request today" in listed.text
    asked = owner.follow("Revoke old script")
    assert asked.heading == "Revoke the key “old script”?"
    assert "last used" in asked.text
    assert status_of_call(app, key) == 200
    done = owner.press("Revoke")
    assert "is revoked" in done.role("status")
    assert status_of_call(app, key) == 401
    assert "Revoked and expired (1)" in done.text
    assert "Revoke old script" not in done.links()
    assert owner.open(f"/keys/{key.split('_')[1]}/revoke").has_button("Revoke") is False


def test_names_of_keys_are_shown_as_text(owner, rt):
    profile = add_profile(rt, name=MARKUP)
    owner.open("/keys")
    pages = [owner.press("Create key", {"Name": MARKUP, "#profiles": [profile]}), owner.open("/keys")]
    pages += [owner.follow(f"Revoke {MARKUP}"), owner.press("Revoke")]
    for page in pages:
        assert MARKUP in page.text
        assert page.root.all("img") == []


FINDING = "Urgent: Keep or revoke the keys of the restored backup"


@pytest.fixture
def leaked(rt: Runtime) -> str:
    """A key that came with the backup, like the key called MARKUP. The key `fresh` was created after the restore."""
    key = rt.write(api_keys.create, "leaked")
    rt.write(api_keys.create, MARKUP, "read")
    rt.db.write(api_keys.mark_restored)
    rt.write(api_keys.create, "fresh")
    return key


def findings(page: Page) -> list[str]:
    return [one.text for one in page.root.all("h3")]


def names(rt: Runtime) -> list[str]:
    return [key.name for key in access_rows.unrevoked_keys(rt.db)]


def test_keep_keys_removes_the_alert_and_is_in_the_audit_log(owner, rt, leaked):
    page = owner.open("/")
    assert FINDING in findings(page)
    assert "2 API keys came with the restored backup and are valid." in page.text
    assert MARKUP in page.text  # as text
    assert "fresh" not in page.text
    assert "admin" not in page.text, "the dashboard names what its reader can do here"
    assert "Press “Keep keys” on the overview" in owner.open("/system/findings").text
    page = owner.press("Keep keys", on="/")
    assert (page.path, page.role("status")) == ("/", "2 keys are kept.")
    assert FINDING not in findings(page)
    assert "restored backup" not in owner.open("/system/findings").text
    assert sorted(names(rt)) == sorted(["fresh", "leaked", MARKUP])
    entries = audit_log.load_page(rt.db, ["key"]).entries[:2]
    assert {(one.actor, one.action, one.label) for one in entries} == {
        ("dashboard", "key.kept", "leaked"),
        ("dashboard", "key.kept", MARKUP),
    }
    assert "Kept the API key “leaked” of a restored backup." in owner.open("/audit?kind=key").text


def test_the_question_before_resume_lists_the_keys(owner, rt, leaked):
    become_restored(rt)
    page = owner.open("/system/resume")
    assert "2 API keys came with the restored backup and are valid." in page.text
    assert "leaked" in page.text
    rt.write(api_keys.keep_restored)
    assert "restored backup" not in owner.open("/system/resume").text
