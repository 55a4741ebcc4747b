"""Which redirect address each network accepts, and what its table must say about each kind."""

import re
from collections.abc import Iterable

import pytest

from socialpub.core.settings.schema import ProvidersSection
from socialpub.providers import registry

RULES = {name: one.oauth.redirect_rules for name, one in registry.build(ProvidersSection()).items()}
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
def test_each_network_accepts_addresses_of_its_own_rule(
    network: str, accepted: Iterable[str], refused: Iterable[str]
) -> None:
    assert [address for address in accepted if RULES[network].find(address) is None] == []
    assert [address for address in refused if RULES[network].find(address) is not None] == []


def test_tiktok_has_one_kind_of_app_for_this_machine_and_another_for_https() -> None:
    kinds = {address: row.app for address in (LOCAL, NAMED, PUBLIC) if (row := RULES["tiktok"].find(address))}
    assert kinds == {LOCAL: "desktop", NAMED: "desktop", PUBLIC: "web"}


def test_tiktok_wants_fewer_than_512_characters() -> None:
    base = "https://social.example.com/"
    assert RULES["tiktok"].find(base + "a" * (511 - len(base))) is not None
    assert RULES["tiktok"].find(base + "a" * (512 - len(base))) is None


@pytest.mark.parametrize("network", RULES)
def test_every_row_names_its_source_and_a_remedy_is_always_accepted(network: str) -> None:
    rules = RULES[network]
    for row in rules.rows:
        assert row.source
        assert row.takes
        assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", row.read_on), row
    suggested = rules.local(8000, "/cb")
    assert suggested is not None
    assert rules.find(suggested) is not None
