"""`admin rotate-secret`: everything goes on with another key, wherever it is cut off."""

import inspect
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

import socialpub
from socialpub.accounts import consents
from socialpub.core.errors import Forbidden, OperatorError
from socialpub.core.secrets import crypto, signed_urls
from socialpub.db import secret_key
from socialpub.db.tables import audit_log
from socialpub.ops import audit_text
from socialpub.ops.notify import send
from socialpub.ops.webhooks import receivers
from tests.integration.cli.conftest import Terminal
from tests.support.appliance import accept, state_of
from tests.support.drain import drain
from tests.support.select import select_all, select_value


@pytest.fixture
def profile(terminal: Terminal) -> str:
    return terminal.connect("ada")


def key_of(terminal: Terminal) -> Path:
    return terminal.folder / "data" / "secret.key"


def check_value(path: Path) -> str:
    return crypto.load(path).check_value


def rotate(terminal: Terminal, *options: str) -> Path:
    """Return the file of the former key."""
    terminal.success("admin", "rotate-secret", *options)
    return sorted(key_of(terminal).parent.glob("secret.key.until-*"))[-1]


def test_accounts_stay_connected_and_posts_go_out(terminal: Terminal, profile: str) -> None:
    with terminal.open() as rt:
        post = accept(rt, profile, body="Accepted before")
    before = check_value(key_of(terminal))
    former = rotate(terminal)
    assert check_value(former) == before != check_value(key_of(terminal))
    assert key_of(terminal).stat().st_mode & 0o777 == former.stat().st_mode & 0o777 == 0o600
    with terminal.open() as rt:
        drain(rt, terminal.clock)
        assert state_of(rt, post) == "published"
        assert audit_text.describe(audit_log.load_page(rt.db).entries[0]) == (
            "Created a new secret.key and encrypted all stored secrets again."
        )
    assert "must be fixed" not in terminal("doctor", "--problems").stderr


def test_nothing_that_is_sealed_opens_with_the_former_key(terminal: Terminal, profile: str) -> None:
    with terminal.open() as rt:
        post = accept(rt, profile)
        (delivery,) = select_all(rt.db, "SELECT id FROM delivery WHERE post_id = ?", (post,))
        address = rt.secrets.seal("https://upload", "delivery", delivery["id"], "memo").decode()
        memo = json.dumps({"upload": {"address": address}})
        rt.db.write(lambda tx: tx.execute_sql("UPDATE delivery SET memo = ? WHERE id = ?", (memo, delivery["id"])))
        consents.begin(rt, "x")
        rt.write(send.add_service, SecretStr("gotify://gotify.lan/HiddenToken"), "gotify://gotify.lan")
        rt.write(receivers.add, *receivers.parse_url("http://n8n.lan/HiddenPath"))
    former = crypto.load(rotate(terminal))
    places = 0
    with terminal.open() as rt:
        for table, column in (
            ("profile", "access_token"),
            ("profile", "refresh_token"),
            ("consent", "verifier"),
            ("notify_address", "url"),
            ("webhook", "url"),
            ("webhook", "secret"),
        ):
            for row in select_all(rt.db, f"SELECT id, {column} AS sealed FROM {table}"):
                places += 1
                assert rt.secrets.open(row["sealed"], table, row["id"], column)
                with pytest.raises(OperatorError):
                    former.open(row["sealed"], table, row["id"], column)
        sealed = select_value(rt.db, "SELECT json_extract(memo, '$.upload.address') FROM delivery").encode()
        assert rt.secrets.open(sealed, "delivery", delivery["id"], "memo") == "https://upload"
        assert [one.url.get_secret_value() for one in send.list_services(rt)] == ["gotify://gotify.lan/HiddenToken"]
    assert places == 6


def test_every_place_that_seals_is_known_to_the_rotation() -> None:
    """A new encrypted column needs a line in `ops/secret_rotation.py`, and here."""
    root = Path(inspect.getfile(socialpub)).parent
    sealing = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if re.search(r"\.seal\(", path.read_text()) and "sandbox" not in path.parts
    }
    assert sealing == {
        "accounts/consents.py",
        "accounts/tokens.py",
        "db/secret_key.py",
        "ops/notify/send.py",
        "ops/secret_rotation.py",
        "ops/webhooks/receivers.py",
        "providers/tiktok/upload.py",
        "publishing/delivery/engine.py",
    }


def test_addresses_that_were_handed_out_are_valid_until_they_end_and_no_longer(
    terminal: Terminal, profile: str
) -> None:
    key = "06/" + "0" * 8 + ".jpg"
    with terminal.open() as rt:
        query = urlsplit(signed_urls.media_url(rt.settings, rt.secrets, key, rt.now())).query
        lifetime = signed_urls.MEDIA_LIFETIME.total_seconds()
    thief = crypto.load(rotate(terminal))
    with terminal.open() as rt:
        assert signed_urls.check_media(rt.secrets, key, query, rt.now()) == lifetime
        with pytest.raises(Forbidden):
            signed_urls.check_media(rt.secrets, key.replace("0", "1"), query, rt.now())
    rotate(terminal)
    with terminal.open() as rt:
        assert signed_urls.check_media(rt.secrets, key, query, rt.now()) == lifetime, "also after a second change"
        terminal.clock.forward(lifetime)
        with pytest.raises(Forbidden, match="expired"):
            signed_urls.check_media(rt.secrets, key, query, rt.now())
        terminal.clock.forward(7 * 86400)
        forged = urlsplit(signed_urls.media_url(rt.settings, thief, key, rt.now())).query
        with pytest.raises(Forbidden, match="not valid"):
            signed_urls.check_media(rt.secrets, key, forged, rt.now())


def test_they_end_at_once_when_somebody_else_has_the_key(terminal: Terminal, profile: str) -> None:
    key = "06/" + "0" * 8 + ".jpg"
    with terminal.open() as rt:
        query = urlsplit(signed_urls.media_url(rt.settings, rt.secrets, key, rt.now())).query
    rotate(terminal, "--end-addresses")
    with terminal.open() as rt, pytest.raises(Forbidden):
        signed_urls.check_media(rt.secrets, key, query, rt.now())


def test_it_is_refused_while_something_runs(terminal: Terminal, profile: str) -> None:
    before = key_of(terminal).read_bytes()
    with terminal.open("worker"):
        refused = terminal("admin", "rotate-secret")
    assert refused.exit_code == 1
    assert f"then run `socialpub --config {terminal.config} admin rotate-secret`. Start `" in refused.stderr
    assert [path.name for path in key_of(terminal).parent.glob("secret.key*")] == ["secret.key"]
    assert key_of(terminal).read_bytes() == before


class PowerCut(BaseException):
    pass


CUTS = {
    "socialpub.ops.secret_rotation.secret_key.reseal": "former",
    "socialpub.ops.secret_rotation.audit_log.record": "former",
    "socialpub.ops.secret_rotation.secret_key.swap_key_files": "next",
    "pathlib.Path.replace": "next",
}


@pytest.mark.parametrize(("where", "belongs_to"), CUTS.items())
def test_cut_off_anywhere_the_database_belongs_to_a_key_that_is_there(
    terminal: Terminal, profile: str, monkeypatch: pytest.MonkeyPatch, where: str, belongs_to: str
) -> None:
    before = check_value(key_of(terminal))

    def cut(*_: object, **__: object) -> None:
        raise PowerCut

    with monkeypatch.context() as patch, pytest.raises(PowerCut):
        patch.setattr(where, cut)
        terminal("admin", "rotate-secret")
    following = secret_key.next_key_file(key_of(terminal))
    assert following.exists()
    with closing(sqlite3.connect(terminal.folder / "data" / "socialpub.db")) as rows:
        (bound,) = rows.execute("SELECT value FROM appliance WHERE name = 'secret_key'").fetchone()
    assert bound == (before if belongs_to == "former" else check_value(following))
    doctor = terminal("doctor")
    assert ("was interrupted" in doctor.stdout) == (belongs_to == "next")
    assert not following.exists(), "the doctor's look at the database has finished it"
    assert check_value(key_of(terminal)) == bound
    with terminal.open() as rt:
        post = accept(rt, profile)
        drain(rt, terminal.clock)
        assert state_of(rt, post) == "published"
    rotate(terminal)


def test_a_key_that_comes_from_elsewhere_is_not_replaced(terminal: Terminal, profile: str) -> None:
    elsewhere = terminal.folder / "credentials"
    key_of(terminal).rename(elsewhere)
    key_of(terminal).symlink_to(elsewhere)
    assert "Replace the link or mount" in " ".join(terminal.refusal("admin", "rotate-secret").split())
    assert terminal("admin", "list-profiles").exit_code == 0


def test_a_backup_from_before_is_restored_with_the_key_of_before(
    terminal: Terminal, profile: str, tmp_path: Path
) -> None:
    copy = tmp_path / "before.tar"
    assert terminal("backup", str(copy)).exit_code == 0
    former = rotate(terminal)
    data = terminal.folder / "data"
    data.rename(terminal.folder / "lost")
    data.mkdir(mode=0o700)
    (terminal.folder / "lost" / "secret.key").rename(data / "secret.key")
    assert "another secret.key" in terminal("restore", str(copy)).stderr
    (data / "secret.key").unlink()
    (terminal.folder / "lost" / former.name).rename(data / "secret.key")
    assert terminal("restore", str(copy)).exit_code == 0
    assert profile in terminal("admin", "list-profiles").stdout
    rotate(terminal)
