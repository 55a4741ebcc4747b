"""The rooms of the demo, one by one; the whole of it runs in `tests/e2e`."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from starlette.testclient import TestClient

from socialpub.accounts import consents
from socialpub.cli.demo.command import DemoProcesses, require_success
from socialpub.cli.demo.walkthrough import consent_form
from socialpub.cli.output import CommandError
from socialpub.cli.sandbox import provider_lines
from socialpub.core.settings.loader import Settings, load
from socialpub.runtime import Runtime, build
from socialpub.sandbox import create_app
from tests.stand_ins import World
from tests.support.appliance import settings_in
from tests.support.hand_clock import HandClock

SANDBOX = "http://127.0.0.1:8100"


@pytest.fixture
def pointed(tmp_path: Path) -> Settings:
    """Return the configuration lines of `socialpub sandbox`."""
    config = tmp_path / "config.toml"
    config.write_text(provider_lines(SANDBOX))
    return load(config, {})


@pytest.fixture
def appliance(tmp_path: Path, pointed: Settings, clock: HandClock) -> Any:
    rt = build(settings_in(tmp_path, providers=pointed.providers), clock=clock, role="test")
    yield rt
    rt.close()


def test_the_sandboxs_lines_lead_every_network_to_it(pointed: Settings) -> None:
    for name in ("x", "tiktok", "pinterest"):
        section = getattr(pointed.providers, name)
        assert section.missing_keys() == []
        assert section.api_url.startswith(f"{SANDBOX}/{name}")
        assert section.authorize_url.startswith(f"{SANDBOX}/{name}/")
        assert section.allows_upload_host("127.0.0.1")


@pytest.mark.parametrize("network", ["x", "tiktok", "pinterest"])
def test_the_consent_of_the_demo_covers_every_scope(appliance: Runtime, network: str) -> None:
    world = World()
    web = TestClient(create_app(world), base_url=SANDBOX, follow_redirects=False)
    _, url = consents.begin(appliance, network)
    answer = web.post(url, data=consent_form(url, "demo"))
    came_back = dict(parse_qsl(urlsplit(answer.headers["location"]).query))
    code = world.networks[network].codes[came_back["code"]]  # type: ignore[attr-defined]
    assert appliance.providers[network].auth.missing_scopes(frozenset(code.scopes)) == []


def test_a_network_without_its_post_is_named_with_the_reason(tmp_path: Path) -> None:
    processes = DemoProcesses(tmp_path / "demo")
    good = {"provider": "x", "profileName": "Demo", "status": "published"}
    refused = {"provider": "tiktok", "profileName": "Demo", "status": "failed", "errorMessage": "Too many today."}
    late = {"provider": "pinterest", "profileName": "Demo", "status": "publishing"}
    require_success(processes, {"picture": {"deliveries": [good]}})
    with pytest.raises(CommandError) as raised:
        require_success(processes, {"picture": {"deliveries": [good, refused]}, "video": {"deliveries": [late]}})
    assert raised.value.exit_code == 1
    assert "The picture is not on TikTok “Demo” (failed): Too many today." in raised.value.message
    assert "The video is not on Pinterest “Demo” (publishing): no outcome yet" in raised.value.message
    assert "X" not in raised.value.message


def test_a_second_demo_in_the_same_folder_is_turned_away(tmp_path: Path) -> None:
    first = DemoProcesses(tmp_path / "demo")
    with pytest.raises(CommandError, match="already"):
        DemoProcesses(tmp_path / "demo")
    first.__exit__()


def test_a_folder_that_another_version_left_keeps_its_data_beside_the_new_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "demo" / "data"
    data.mkdir(parents=True)
    with closing(sqlite3.connect(data / "socialpub.db")) as database:
        database.execute("CREATE TABLE schema_migration (id INTEGER, name TEXT)")
        database.execute("INSERT INTO schema_migration VALUES (1, '9999_of_a_newer_version')")
        database.commit()
    DemoProcesses(tmp_path / "demo").__exit__()
    (former,) = tmp_path.glob("demo/unreadable-*/data/socialpub.db")
    assert not (data / "socialpub.db").exists()
    assert str(former.parent) in capsys.readouterr().out
