"""Sealed tokens belong to their row and column, and the upgrade seals tokens of a former version again."""

import base64
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from socialpub.accounts import tokens
from socialpub.core.errors import OperatorError
from socialpub.core.settings.loader import Settings
from socialpub.db.locks import ProcessLock
from socialpub.db.states import State
from socialpub.ops.backup import create
from socialpub.runtime import Runtime, build
from tests.support.appliance import accept, add_profile, open_appliance, state_of
from tests.support.copies import put_back
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.scripted_network import ScriptedNetwork

ADDRESS = "https://open-upload.tiktokapis.com/video/?upload_token=1"
BROKEN = Fernet(base64.urlsafe_b64encode(b"x" * 32)).encrypt(b"of another key")


def former(text: str) -> bytes:
    derived = HKDF(SHA256(), length=32, salt=None, info=b"socialpub tokens at rest").derive(b"k" * 32)
    return Fernet(base64.urlsafe_b64encode(derived)).encrypt(text.encode())


# --- bound -----------------------------------------------------------------------------------------------------------


def test_a_token_carried_to_another_row_cannot_be_used_there(
    rt: Runtime, network: ScriptedNetwork, profile: str, clock: HandClock
) -> None:
    other = add_profile(rt, account_id="other", tokens=("access-other", None))
    rt.db.write(
        lambda tx: tx.execute(
            "UPDATE profile SET access_token = (SELECT access_token FROM profile WHERE id = ?) WHERE id = ?",
            (other, profile),
        )
    )
    post = accept(rt, profile)
    drain(rt, clock)
    assert state_of(rt, post) is State.FAILED
    assert network.jobs == []


def test_a_token_carried_to_another_column_cannot_be_used_there(rt: Runtime, profile: str) -> None:
    rt.db.write(lambda tx: tx.execute("UPDATE profile SET access_token = refresh_token"))
    with pytest.raises(OperatorError, match="cannot be decrypted"):
        tokens.load_fresh(rt, profile)


def test_sealed_texts_of_the_former_version_are_rejected(rt: Runtime, profile: str) -> None:
    rt.db.write(lambda tx: tx.execute("UPDATE profile SET access_token = ?", (former("access-0"),)))
    with pytest.raises(OperatorError, match="cannot be decrypted"):
        tokens.load_fresh(rt, profile)


# --- upgraded --------------------------------------------------------------------------------------------------------


@pytest.fixture
def old(tmp_path: Path, clock: HandClock, network: ScriptedNetwork) -> Callable[[], Runtime]:
    """Open a data folder of the former version, with profiles, an open consent, and a started upload."""
    rt = open_appliance(tmp_path, clock, providers={"x": network})
    good, bad = add_profile(rt), add_profile(rt, account_id="bad")
    post = accept(rt, good)
    verifier = consent_begun(rt)
    rt.close()
    with former_database(tmp_path) as database:
        database.execute(
            "UPDATE profile SET access_token = ?, refresh_token = ? WHERE id = ?",
            (former("access-0"), former("refresh-0"), good),
        )
        database.execute("UPDATE profile SET access_token = ?, refresh_token = NULL WHERE id = ?", (BROKEN, bad))
        database.execute("UPDATE consent SET verifier = ? WHERE id = ?", (former("verifier"), verifier))
        memo = {"publish_id": "v_pub", "upload": {"address": former(ADDRESS).decode(), "sent": 5, "out": False}}
        database.execute("UPDATE delivery SET memo = ? WHERE post_id = ?", (json.dumps(memo), post))
    return lambda: open_appliance(tmp_path, clock, providers={"x": network})


def consent_begun(rt: Runtime) -> str:
    rt.db.write(
        lambda tx: tx.insert(
            "consent", id="c", state_hash=b"h", provider="x", verifier=b"v", redirect_uri="r",
            created_at=tx.stamp, expires_at=tx.stamp,
        )
    )  # fmt: skip
    return "c"


@contextmanager
def former_database(folder: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(folder / "data" / "socialpub.db")) as database, database:
        database.execute("DELETE FROM schema_migration WHERE name = '0005_bound_tokens'")
        yield database


def test_the_upgrade_seals_tokens_of_the_former_version_again(old: Callable[[], Runtime]) -> None:
    rt = old()
    try:
        good, bad = rt.reader.all("SELECT * FROM profile ORDER BY account_id <> 'acct'")
        assert rt.secrets.open(good["access_token"], "profile", good["id"], "access_token") == "access-0"
        assert rt.secrets.open(good["refresh_token"], "profile", good["id"], "refresh_token") == "refresh-0"
        assert bad["access_token"] == BROKEN, "what cannot be opened is kept as it is"
        with pytest.raises(OperatorError, match="cannot be decrypted"):
            tokens.load_fresh(rt, bad["id"])
        sealed = rt.reader.value("SELECT verifier FROM consent")
        assert rt.secrets.open(sealed, "consent", "c", "verifier") == "verifier"
        delivery = rt.reader.one("SELECT id, memo FROM delivery")
        assert delivery is not None
        memo = json.loads(delivery["memo"])
        address = memo["upload"].pop("address")
        assert rt.secrets.open(address.encode(), "delivery", delivery["id"], "memo") == ADDRESS
        assert memo == {"publish_id": "v_pub", "upload": {"sent": 5, "out": False}}
    finally:
        rt.close()


def test_an_upgrade_keeps_posts(old: Callable[[], Runtime], network: ScriptedNetwork, clock: HandClock) -> None:
    rt = old()
    try:
        drain(rt, clock)
        assert [job.token for job in network.jobs] == ["access-0"]
    finally:
        rt.close()


def test_with_another_secret_key_nothing_is_changed(
    old: Callable[[], Runtime], tmp_path: Path, clock: HandClock
) -> None:
    path, key = tmp_path / "data" / "socialpub.db", tmp_path / "data" / "secret.key"
    right, before = key.read_text(), contents(path)
    for wrong in (base64.urlsafe_b64encode(b"w" * 32).decode(), None):
        key.unlink()
        if wrong:
            key.write_text(wrong)
        with pytest.raises(OperatorError, match=r"secret\.key"):
            build(Settings(data_dir=tmp_path / "data"), clock=clock)
        assert contents(path) == before
        key.write_text(right)
    rt = old()
    try:
        good = rt.reader.value("SELECT id FROM profile WHERE account_id = 'acct'")
        assert tokens.load_fresh(rt, good) == "access-0"
    finally:
        rt.close()


def contents(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        return list(database.iterdump())


def test_nothing_is_changed_under_a_process_of_the_former_version(
    old: Callable[[], Runtime], tmp_path: Path, clock: HandClock
) -> None:
    path = tmp_path / "data" / "socialpub.db"
    before = contents(path)
    worker = ProcessLock(tmp_path / "data" / "run" / "owners", "worker-0123")
    try:
        with pytest.raises(OperatorError, match="worker-0123") as refused:
            old()
        assert refused.value.hint
        assert contents(path) == before
    finally:
        worker.close()
    old().close()


def test_a_backup_of_the_former_version_is_upgraded_at_its_first_start(
    old: Callable[[], Runtime], tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    rt = old()
    good = rt.reader.value("SELECT id FROM profile WHERE account_id = 'acct'")
    copied = create.copy_database

    def as_it_was(rt: Runtime, target: Path) -> None:
        copied(rt, target)
        with closing(sqlite3.connect(target)) as database, database:
            database.execute("DELETE FROM schema_migration WHERE name = '0005_bound_tokens'")
            database.execute("UPDATE profile SET access_token = ? WHERE id = ?", (former("access-0"), good))

    monkeypatch.setattr(create, "copy_database", as_it_was)
    create.write_backup(rt, tmp_path / "copy", with_secret=True)
    rt.close()
    other = build(put_back(tmp_path / "copy", tmp_path / "new", clock), clock=clock)
    try:
        assert tokens.load_fresh(other, good) == "access-0"
    finally:
        other.close()
