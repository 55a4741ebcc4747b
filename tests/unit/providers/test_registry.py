"""The data of every network: its section, its redirect addresses and its options."""

import re
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from socialpub.core.settings.networks import BlueskySection, NetworkSection
from socialpub.core.settings.schema import ProvidersSection
from socialpub.providers import registry, x
from socialpub.providers.base import Content
from socialpub.providers.bluesky import Bluesky
from socialpub.providers.bluesky.record import build_gate
from socialpub.providers.pinterest import upload
from socialpub.providers.registry import OPTIONS
from socialpub.providers.tiktok import upload as upload_tiktok
from socialpub.sandbox import World
from socialpub.web.api.post_requests import ProviderOptions
from socialpub.web.api.requests import Provider


def test_every_network_has_a_section_of_the_configuration():
    sections = ProvidersSection()
    assert tuple(ProvidersSection.model_fields) == tuple(registry.LABELS)
    for name, provider in registry.build(sections).items():
        assert isinstance(getattr(sections, name), NetworkSection)
        assert (provider.name, provider.label) == (name, registry.LABELS[name])


def test_an_extension_network_exists_only_when_its_section_enables_it():
    enabled = ProvidersSection.model_validate({"bluesky": {"enabled": True}})
    assert tuple(registry.build(ProvidersSection())) == registry.SPECIFIED == ("x", "tiktok", "pinterest")
    assert tuple(registry.build(enabled)) == (*registry.SPECIFIED, "bluesky")


def test_every_specified_network_is_in_the_documents_of_the_api():
    assert get_args(get_args(Provider.__value__)[0]) == registry.SPECIFIED
    assert tuple(ProviderOptions.model_fields) == registry.SPECIFIED


def test_the_sandbox_simulates_every_specified_network():
    assert set(World().networks) >= set(registry.SPECIFIED)


RULES = {name: one.auth.redirect_rules for name, one in registry.build(ProvidersSection()).items()}
LOCAL, NAMED, PUBLIC = "http://127.0.0.1:8000/cb", "http://localhost:8000/cb", "https://social.example.com/cb"


@pytest.mark.parametrize(
    ("network", "accepted", "refused"),
    [
        ("x", [LOCAL, "http://127.0.0.1/cb", PUBLIC], [NAMED, "https://localhost/cb", "http://box.lan/cb"]),
        (
            "tiktok",
            [LOCAL, NAMED, "https://127.0.0.1:8443/cb", PUBLIC],
            ["http://127.0.0.1/cb", "http://box.lan/cb", "http://box.lan:8000/cb", f"{PUBLIC}?a=b"],
        ),
        ("pinterest", [NAMED, "http://localhost/cb", PUBLIC], [LOCAL, "http://box.lan/cb"]),
    ],
)
def test_each_network_accepts_addresses_of_its_own_rule(network, accepted, refused):
    assert [address for address in accepted if RULES[network].find(address) is None] == []
    assert [address for address in refused if RULES[network].find(address) is not None] == []


def test_tiktok_has_one_kind_of_app_for_this_machine_and_another_for_https():
    kinds = {address: row.app for address in (LOCAL, NAMED, PUBLIC) if (row := RULES["tiktok"].find(address))}
    assert kinds == {LOCAL: "desktop", NAMED: "desktop", PUBLIC: "web"}


def test_tiktok_requires_fewer_than_512_characters():
    base = "https://social.example.com/"
    assert RULES["tiktok"].find(base + "a" * (511 - len(base))) is not None
    assert RULES["tiktok"].find(base + "a" * (512 - len(base))) is None


@pytest.mark.parametrize("network", RULES)
def test_every_row_names_its_source_and_a_remedy_is_always_accepted(network):
    rules = RULES[network]
    for row in rules.rows:
        assert row.source
        assert row.accepts
        assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", row.read_on), row
    suggested = rules.local(8000, "/cb")
    assert suggested is not None
    assert rules.find(suggested) is not None


EVERY_OPTION = [pytest.param(name, option, id=option.name) for name, table in OPTIONS.items() for option in table]
WITH_DEFAULT = [param for param in EVERY_OPTION if param.values[1].default is not None]
NOW = datetime(2026, 11, 23, tzinfo=UTC)
NEEDED = {"tiktok": {"privacyLevel": "SELF_ONLY"}}


def sent(network: str, chosen: dict[str, Any]) -> list[Any]:
    job: Any = SimpleNamespace(options=chosen, content=Content("Hello", ()), memo={"video": {"id": "1"}})
    if network == "x":
        return [x.body_fields(chosen)]
    if network == "tiktok":
        return [upload_tiktok.post_info(job), upload_tiktok.request_body(job, [])]
    if network == "bluesky":
        steps = Bluesky(BlueskySection()).plan(Content("See https://example.com", ()), chosen)
        return [build_gate("at://post", chosen, NOW), *steps]
    return [upload.video_source(job)]


@pytest.mark.parametrize(("network", "option"), EVERY_OPTION)
def test_every_option_documents_itself_and_its_values(network, option):
    assert option.meaning.endswith(".")
    for value in option.values:
        assert f"`{value}`" in option.meaning


@pytest.mark.parametrize(("network", "option"), WITH_DEFAULT)
def test_a_given_default_does_not_change_the_request(network, option):
    chosen = NEEDED.get(network, {})
    assert sent(network, {**chosen, option.name: option.default}) == sent(network, chosen)


@pytest.mark.parametrize(("network", "option"), WITH_DEFAULT)
def test_a_value_other_than_the_default_changes_the_request(network, option):
    chosen, other = NEEDED.get(network, {}), None
    match option.default:
        case bool():
            other = not option.default
        case int():
            other = option.default + 1
        case str():
            other = next(value for value in option.values if value != option.default)
    assert sent(network, {**chosen, option.name: other}) != sent(network, chosen)
