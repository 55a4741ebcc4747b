"""The System page: pause, resume, findings, backups and usage."""

from datetime import timedelta
from pathlib import Path
from urllib.parse import urlencode

import pytest

from socialpub.accounts import api_keys
from socialpub.core import version
from socialpub.core.errors import OperatorError
from socialpub.core.locks import FileLock
from socialpub.db.models import ProfileRow
from socialpub.db.states import State
from socialpub.db.tables import audit_log, counters, waits, webhooks
from socialpub.media.files import Files
from socialpub.ops.backup import create, schedule, verify
from socialpub.ops.webhooks import receivers
from socialpub.publishing.delivery import resume
from socialpub.runtime import Runtime
from tests.integration.uploads.caller import Reply
from tests.samples import media
from tests.support.appliance import accept, add_profile, attempts_of, state_of
from tests.support.copies import become_restored, members_of
from tests.support.drain import drain
from tests.support.sandbox_http import artifact
from tests.support.tab import Page, Tab

MARKUP = "<img src=x onerror=alert(1)>"


def test_pause_holds_posts_and_resume_sends_them(owner, rt, world, clock, x):
    assert "nothing else starts" in owner.press("Pause", on="/system").role("status")
    post = accept(rt, x)
    drain(rt, clock)
    assert state_of(rt, post) is State.QUEUED
    assert len(world.x.posts) == 0
    page = owner.press("Resume")
    assert (page.path, "Publishing continues" in page.role("status")) == ("/system", True)
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED
    assert len(world.x.posts) == 1
    assert owner.open("/system").has_button("Pause")


def test_the_system_page_and_the_doctor_show_the_version(owner):
    assert f"socialpub {version.VERSION}" in " ".join(owner.open("/system").text.split())
    assert f"This is socialpub {version.VERSION}" in owner.open("/system/findings").text


def glance(page: Page) -> dict[str, str]:
    """Return state and text of the summaries by name."""
    found = page.root.of_class("glance")
    headings = [one.text for one in found[0].all("h3")]
    texts = [one.text for one in found[0].all("p")]
    return {name.partition(" ")[0]: f"{name}: {text}" for name, text in zip(headings, texts, strict=True)}


def test_the_system_page_starts_with_worker_disk_clock_and_backup(owner, monkeypatch, well):
    well()
    page = owner.open("/system")
    assert page.root.all("h2")[0].text == "At a glance"
    found = glance(page)
    assert list(found) == ["Worker", "Disk", "Clock", "Backup"]
    assert found["Worker"].startswith("Worker running: Last report: 12 Oct 2026")
    assert found["Disk"].startswith("Disk enough space: ")
    assert found["Clock"].startswith("Clock steady: Current time: 12 Oct 2026, 09:00")
    assert found["Backup"].startswith("Backup made: Last backup:")


def test_the_summaries_show_problems_with_remedies(owner, monkeypatch):
    monkeypatch.setattr(Files, "free_bytes", lambda self: 1000)
    found = glance(owner.open("/system"))
    assert found["Worker"].startswith("Worker problem: The worker has never run.")
    assert found["Disk"].startswith("Disk full: 1000 bytes left")
    assert found["Backup"].startswith("Backup none yet: Download a backup now.")


def test_resume_first_shows_what_is_too_late(owner, rt, world, clock, x):
    owner.press("Pause", on="/system")
    late = accept(rt, x, at=rt.now() + timedelta(hours=1))
    clock.forward(30 * 3600)
    asked = owner.open("/system")
    assert "1 post is more than" in asked.text
    asked = owner.press("Resume")
    assert asked.heading == "Resume publishing?"
    assert "1 post is more than" in asked.text
    assert "1 post is more than" in owner.press("Resume").role("status")
    drain(rt, clock)
    assert (state_of(rt, late), len(world.x.posts)) == (State.FAILED, 0)


def test_resume_after_a_restore_needs_an_answer(owner, rt, world, clock, x):
    post, ahead = accept(rt, x), accept(rt, x, body=MARKUP, at=rt.now() + timedelta(days=1))
    become_restored(rt)
    assert "restored from a backup" in owner.open("/system").text
    page = owner.press("Resume")
    assert "1 delivery was due since then" in page.text
    assert page.links()[MARKUP].endswith(f"/posts/{ahead}")
    refused = owner.press("Resume")
    assert (refused.status, "First choose" in refused.role("alert")) == (400, True)
    assert state_of(rt, post) is State.QUEUED
    done = owner.press("Resume", {"#original": "maybe"})
    assert "1 delivery was due since the backup" in done.role("status")
    drain(rt, clock, within=1800)
    assert (state_of(rt, post), len(world.x.posts)) == (State.FAILED, 0)
    assert "publish" not in [step for step, _ in attempts_of(rt, post)]


def test_resume_without_a_pause_is_refused(owner):
    assert "not paused" in owner.open("/system/resume").role("status")


def test_a_network_that_refuses_this_app_is_shown_and_can_be_tried_at_once(owner, rt):
    rt.db.write(lambda tx: waits.hold(tx, "x", waits.PUBLISHING, f"No credits left {MARKUP}", "402"))
    page = owner.open("/system")
    assert f"No credits left {MARKUP}" in page.text
    assert page.root.all("img") == []
    assert waits.list_holds(rt.db)[0].until > rt.stamp()
    assert "now" in owner.press("Try now").role("status")
    assert waits.list_holds(rt.db)[0].until == rt.stamp()
    rt.db.write(lambda tx: waits.release(tx, "x", waits.PUBLISHING))
    assert not owner.open("/system").has_button("Try now")


def test_findings_name_the_button_to_press(owner, rt, x):
    rt.db.write(lambda tx: tx.update(ProfileRow, x, status="reauthRequired", reason=f"revoked {MARKUP}", name="Me"))
    page = owner.press("Check now", on="/system")
    assert page.heading == "Findings"
    assert "must be fixed" in page.role("status")
    assert f"Me (X) must be connected again: revoked {MARKUP}." in page.text
    assert "Press “Reconnect” on the profile's page" in page.text
    assert "Add an address under System" in page.text
    assert "socialpub admin" not in page.text
    assert page.root.all("img") == []
    first = page.root.all("ul")[1].all("li")[0]
    assert first.text.startswith("problem")


def test_the_usage_of_keys_and_networks_is_counted(owner, rt):
    rt.write(api_keys.create, MARKUP)
    key = api_keys.list_all(rt.db)[0].id
    rt.db.write(lambda tx: counters.add_usage(tx, counters.REQUESTS, {key: 1234}))
    rt.db.write(lambda tx: counters.add_usage(tx, "published", {"tiktok": 3}))
    page = owner.open("/system")
    assert f"{MARKUP} 1,234 1,234" in page.text
    assert "TikTok 0 3 0 3" in page.text
    assert page.root.all("img") == []


def download(owner: Tab) -> Reply:
    owner.open("/system")
    form = owner.page.form_of(owner.page.button("Download backup"))
    return owner.ask("POST", "/system/backup", urlencode(owner.fields_of(form)).encode())


def left(rt: Runtime) -> list[Path]:
    """Return the temporary folders of downloads."""
    return list(rt.settings.data_dir.glob(f"{create.DOWNLOAD}*"))


def test_a_downloaded_backup_can_be_verified_and_restored(owner, rt, tmp_path):
    artifact(rt, media.jpeg(rt.settings.data_dir / "pin.jpg"), "image/jpeg")
    accept(rt, add_profile(rt), body="In the copy")
    reply = download(owner)
    assert reply.status == 200
    assert reply.headers["content-disposition"].startswith('attachment; filename="socialpub-20')
    assert reply.headers["cache-control"] == "no-store"
    assert int(reply.headers["content-length"]) == len(reply.body)
    file = tmp_path / "downloaded.tar"
    file.write_bytes(reply.body)
    summary = verify.verify_backup(file, rt.secrets)
    assert (summary.posts, summary.media_files, summary.holds_secret) == (1, 1, False)
    assert "secret.key" not in members_of(file)
    assert left(rt) == []
    assert "The last backup was made" in owner.open("/system").text
    newest = audit_log.load_page(rt.db).entries[0]
    assert (newest.action, newest.actor) == ("backup.made", "dashboard")


def test_a_backup_that_would_fill_the_disk_is_refused(owner, rt, monkeypatch):
    monkeypatch.setattr(Files, "free_bytes", lambda self: 1000)
    reply = download(owner)
    assert reply.status == 409
    assert b"make room" in reply.body or b"disk" in reply.body
    assert left(rt) == []
    assert "failed" in owner.open("/system").text


def test_only_one_backup_is_made_at_a_time(owner, rt):
    assert download(owner).status == 200
    with FileLock(rt.settings.run_dir / "download.lock"):
        reply = download(owner)
    assert (reply.status, b"already being made" in reply.body) == (409, True)
    assert download(owner).status == 200


def test_every_page_of_a_restored_installation_shows_the_pause(owner, rt):
    told = "This installation was restored from a backup of"
    pages = ("/posts", "/compose", "/calendar", "/profiles", "/keys", "/log", "/audit", "/system/findings")
    assert not [path for path in pages if told in owner.open(path).text]
    become_restored(rt)
    assert [path for path in pages if told not in owner.open(path).text] == []
    assert "This installation was restored from a backup and is paused" in owner.open("/").text
    assert "This installation was restored from a backup of" in owner.open("/system").text
    rt.write(resume.resume)
    assert not [path for path in ("/", *pages) if "restored from a backup" in owner.open(path).text]


def test_the_system_page_shows_scheduled_backups(owner, rt, clock):
    assert "scheduled" not in owner.open("/system").text
    made = schedule.make_backup(rt)
    page = owner.open("/system").text
    assert str(made.path) in page
    assert "of which" in page
    assert "Next: " not in page, "a timer's time is not known here"
    section = rt.settings.backup.model_copy(update={"every": timedelta(hours=24), "after": ("/nowhere/restic",)})
    rt.settings = rt.settings.model_copy(update={"backup": section})
    assert "Next: " in owner.open("/system").text
    clock.forward(86400)
    with pytest.raises(OperatorError):
        schedule.make_backup(rt)
    page = owner.open("/system").text
    assert "The last backup failed" in page
    assert "'/nowhere/restic' cannot be run" in page


def test_a_late_webhook_is_on_the_overview_and_on_the_system_page_without_its_url(owner, rt, clock, x):
    assert "Webhooks" not in owner.open("/system").text
    url = "http://ada:pass-word@n8n.lan:5678/hidden?token=hidden"
    webhook_id, _ = rt.write(receivers.add, *receivers.parse_url(url), receivers.EVENTS)
    assert "http://n8n.lan:5678 has accepted 0 events" in " ".join(owner.open("/system").text.split())
    accept(rt, x)
    rt.write(lambda _, tx: webhooks.note_failed(tx, webhook_id, "500", tx.stamp))
    clock.forward(3600)
    overview, system = (" ".join(owner.open(path).text.split()) for path in ("/", "/system"))
    assert "The webhook http://n8n.lan:5678 is late" in overview
    assert "http://n8n.lan:5678 is late" in system and "500" in system
    assert not any(word in overview + system for word in ("hidden", "pass-word", "whsec"))
