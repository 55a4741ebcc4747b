"""A copy is taken away through the browser: whole, without the key, and nothing of it stays."""

from datetime import timedelta
from pathlib import Path
from urllib.parse import urlencode

import pytest

from socialpub.core.errors import OperatorError
from socialpub.core.locks import FileLock
from socialpub.db.tables import audit_log
from socialpub.media.files import Files
from socialpub.ops.backup import create, format, schedule, verify
from socialpub.publishing.delivery import resume
from socialpub.runtime import Runtime
from tests.integration.uploads.caller import Reply
from tests.samples import media
from tests.support.appliance import accept, add_profile
from tests.support.copies import become_restored, members_of
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import artifact
from tests.support.tab import Tab


def download(owner: Tab) -> Reply:
    owner.open("/system")
    form = owner.page.form_of(owner.page.button("Download backup"))
    return owner.ask("POST", "/system/copy", urlencode(owner.fields_of(form)).encode())


def left(rt: Runtime) -> list[Path]:
    """Temporary folders of backups, and their records."""
    return [path for folder in (rt.settings.data_dir, rt.settings.run_dir) for path in folder.glob(f"{create.PREFIX}*")]


def test_the_downloaded_copy_is_one_that_can_be_verified_and_restored(owner: Tab, rt: Runtime, tmp_path: Path) -> None:
    artifact(rt, media.jpeg(rt.settings.data_dir / "pin.jpg"), "image/jpeg")
    accept(rt, add_profile(rt), body="In the copy")
    reply = download(owner)
    assert reply.status == 200
    assert reply.headers["content-disposition"].startswith('attachment; filename="socialpub-20')
    assert reply.headers["cache-control"] == "no-store"
    assert int(reply.headers["content-length"]) == len(reply.body)
    file = tmp_path / "downloaded.tar"
    file.write_bytes(reply.body)
    summary = verify.verify(file, rt.secrets)
    assert (summary.posts, summary.media_files, summary.holds_secret) == (1, 1, False)
    assert format.SECRET not in members_of(file)
    assert left(rt) == []
    assert "The last backup was made" in owner.open("/system").text
    newest = audit_log.read(rt.reader).entries[0]
    assert (newest.action, newest.actor) == ("copy.made", "dashboard")


def test_a_copy_that_would_fill_the_disk_is_refused_and_leaves_nothing(
    owner: Tab, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Files, "free_bytes", lambda self: 1000)
    reply = download(owner)
    assert reply.status == 409
    assert b"make room" in reply.body or b"disk" in reply.body
    assert left(rt) == []
    assert "failed" in owner.open("/system").text


def test_two_copies_are_not_made_at_once(owner: Tab, rt: Runtime) -> None:
    assert download(owner).status == 200
    with FileLock(rt.settings.run_dir / "download.lock"):
        reply = download(owner)
    assert (reply.status, b"being made already" in reply.body) == (409, True)
    assert download(owner).status == 200


def test_a_copy_that_fails_is_told(owner: Tab, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OperatorError("The backup could not be written.", "Check the disk.")

    monkeypatch.setattr(create, "write", fail)
    reply = download(owner)
    assert (reply.status, b"The backup could not be written. Check the disk." in reply.body) == (409, True)


# --- where copies stand ----------------------------------------------------------------------------------------------


def test_every_page_of_a_restored_copy_says_that_it_is_paused(owner: Tab, rt: Runtime) -> None:
    told = "This installation was restored from a backup of"
    pages = ("/posts", "/compose", "/calendar", "/profiles", "/keys", "/log", "/trail", "/system/findings")
    assert not [path for path in pages if told in owner.open(path).text]
    become_restored(rt)
    assert [path for path in pages if told not in owner.open(path).text] == []
    assert "This installation was restored from a backup and is paused" in owner.open("/").text
    assert "This installation was restored from a backup of" in owner.open("/system").text
    rt.write(resume.resume)
    assert not [path for path in ("/", *pages) if "restored from a backup" in owner.open(path).text]


def test_the_system_page_tells_of_scheduled_copies(owner: Tab, rt: Runtime, clock: HandClock) -> None:
    assert "scheduled" not in owner.open("/system").text
    made = schedule.make(rt)
    page = owner.open("/system").text
    assert str(made.path) in page
    assert "of which" in page
    assert "Next: " not in page, "a timer's time is not known here"
    section = rt.settings.backup.model_copy(update={"every": timedelta(hours=24), "after": ("/nowhere/restic",)})
    rt.settings = rt.settings.model_copy(update={"backup": section})
    assert "Next: " in owner.open("/system").text
    clock.forward(86400)
    with pytest.raises(OperatorError):
        schedule.make(rt)
    page = owner.open("/system").text
    assert "The last backup failed" in page
    assert "'/nowhere/restic' cannot be run" in page
