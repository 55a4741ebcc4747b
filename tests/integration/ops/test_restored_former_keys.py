"""The database of a former version is restored: its keys are recorded before any migration, and settled after it."""

from datetime import timedelta
from pathlib import Path

import pytest

from socialpub.accounts import api_keys
from socialpub.core.clock import parse
from socialpub.core.settings.loader import Settings
from socialpub.ops.backup import restore
from socialpub.runtime import build
from tests.support.hand_clock import HandClock
from tests.upgrades import sample


@pytest.mark.parametrize("name", [sample.names()[0], sample.names()[8]])
def test_keys_of_a_former_version_are_reported_after_its_upgrade(name: str, tmp_path: Path) -> None:
    facts = sample.unpack(name, tmp_path)
    clock = HandClock(parse(facts.taken_at) + timedelta(days=1))
    former, data = tmp_path / "data", tmp_path / "restored"
    data.mkdir(mode=0o700)
    (former / "secret.key").rename(data / "secret.key")
    settings = Settings(data_dir=data)
    summary = restore.restore(former / "socialpub.db", settings, clock, unsealed=True)
    key_id = facts.key.split("_")[1]
    assert key_id in [key.id for key in summary.valid_keys]

    rt = build(settings, clock=clock, role="test")
    assert api_keys.list_undecided(rt.reader, rt.stamp()) == list(summary.valid_keys)
    fresh = rt.write(api_keys.create, "fresh")
    rt.write(api_keys.revoke_restored)
    assert api_keys.authenticate(rt.reader, facts.key, rt.now()) is None
    assert api_keys.authenticate(rt.reader, fresh, rt.now()) is not None
    assert api_keys.list_undecided(rt.reader, rt.stamp()) == []
    rt.close()
