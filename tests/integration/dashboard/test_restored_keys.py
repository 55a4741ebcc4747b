"""The overview reports the keys of a restored backup until the owner keeps or revokes them."""

import pytest
from playwright.sync_api import Browser, expect

from socialpub.accounts import api_keys, sign_in
from socialpub.accounts.sign_in import Purpose
from socialpub.db.tables import audit_log
from socialpub.runtime import Runtime
from socialpub.web.http.app import App
from tests.support import axe
from tests.support.copies import become_restored
from tests.support.dashboard_browser import DashboardBrowser, Page
from tests.support.served import served

FINDING = "Urgent: Keep or revoke the keys of the restored backup"
MARKUP = "<img src=x onerror=alert(1)>"


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
    return [key.name for key in api_keys.unrevoked(rt.reader)]


def test_keep_keys_settles_the_finding_and_the_audit_log_names_who(
    owner: DashboardBrowser, rt: Runtime, leaked: str
) -> None:
    page = owner.open("/")
    assert FINDING in findings(page)
    assert "2 API keys came with the restored backup and are valid." in page.text
    assert MARKUP in page.text  # as text
    assert "fresh" not in page.text
    assert "admin" not in page.text, "the dashboard names what its reader can do here"
    assert "Press “Keep keys” on the overview" in owner.open("/system/findings").text
    owner.open("/")
    page = owner.press("Keep keys")
    assert (page.path, page.role("status")) == ("/", "2 keys are kept.")
    assert FINDING not in findings(page)
    assert "restored backup" not in owner.open("/system/findings").text
    assert sorted(names(rt)) == sorted(["fresh", "leaked", MARKUP])
    entries = audit_log.read(rt.reader, ["key"]).entries[:2]
    assert {(one.actor, one.action, one.label) for one in entries} == {
        ("dashboard", "key.kept", "leaked"),
        ("dashboard", "key.kept", MARKUP),
    }
    assert "Kept the API key “leaked” of a restored backup." in owner.open("/trail?kind=key").text


def test_revoking_them_under_keys_settles_it_as_well(owner: DashboardBrowser, rt: Runtime, leaked: str) -> None:
    owner.open("/")
    page = owner.follow("Review keys")
    assert page.path == "/keys"
    assert page.text.count("from the restored backup") == 2
    for name in ("leaked", MARKUP):
        owner.open("/keys")
        owner.follow(f"Revoke {name}")
        owner.press("Revoke")
    assert FINDING not in findings(owner.open("/"))
    assert names(rt) == ["fresh"]


def test_a_page_that_is_open_since_before_keeps_nothing_twice(
    owner: DashboardBrowser, rt: Runtime, leaked: str
) -> None:
    owner.open("/")
    rt.write(api_keys.revoke_restored)
    page = owner.press("Keep keys")
    assert page.role("status") == "No key of a restored backup waits for a decision."
    assert names(rt) == ["fresh"]


def test_the_question_before_resume_lists_the_keys(owner: DashboardBrowser, rt: Runtime, leaked: str) -> None:
    become_restored(rt)
    page = owner.open("/system/resume")
    assert "2 API keys came with the restored backup and are valid." in page.text
    assert "leaked" in page.text
    rt.write(api_keys.keep_restored)
    assert "restored backup" not in owner.open("/system/resume").text


@pytest.mark.chromium
def test_the_finding_is_read_and_settled_in_chromium(
    real_browser: Browser, app: App, rt: Runtime, password_hash: str, leaked: str
) -> None:
    rt.write(sign_in.set_password, password_hash)
    become_restored(rt)
    with served(app) as address, real_browser.new_context(viewport={"width": 390, "height": 844}) as context:
        page = context.new_page()
        page.goto(f"{address}/login?token={rt.write(sign_in.create_link, Purpose.SIGN_IN)}")
        finding = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name=FINDING))
        expect(finding).to_contain_text("last used: never")
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert axe.violations(page) == []
        page.get_by_role("button", name="Keep keys").click()
        expect(page.get_by_role("status")).to_have_text("2 keys are kept.")
        expect(finding).to_have_count(0)
