"""The checklist for a new network in the manual's page Development."""

from typing import Any, get_args

import pytest

from socialpub.core.settings.schema import ProvidersSection
from socialpub.providers import registry
from socialpub.providers.tiktok import options as tiktok_options
from socialpub.sandbox import World
from socialpub.web.api.post_requests import ProviderOptions
from socialpub.web.api.requests import Provider
from tests.providers import networks as grid
from tests.stand_ins import World as StandIns
from tests.support.readme import ROOT, topic

FILES = ("limits", "options", "check", "auth", "client", "upload", "read_back", "preview")


def missing_parts(network: Any) -> list[str]:
    """Return the parts that a network does not have, in the order of the checklist."""
    name, package = network.name, ROOT / "socialpub"
    has = {f"providers/{name}/{file}.py": (package / "providers" / name / f"{file}.py").is_file() for file in FILES}
    has |= {
        "the class in the registry": name in registry.LABELS,
        "the section in ProvidersSection": name in ProvidersSection.model_fields,
        "the section in config.example.toml": f"\n[providers.{name}]\n" in (ROOT / "config.example.toml").read_text(),
        f"sandbox/{name}/": (package / "sandbox" / name / "__init__.py").is_file(),
        "the simulation in sandbox/world.py": name in World().networks,
        "the stand-in in tests/stand_ins/world.py": name in StandIns().networks,
        f"tests/unit/providers/{name}/": any((ROOT / "tests" / "unit" / "providers" / name).glob("test_*.py")),
        "scenarios for the grid": name in grid.NETWORKS,
        "a section in the manual": f"## {network.label}\n" in topic("networks").read_text(),
    }
    if name not in registry.EXTENSIONS:
        has |= {
            "the name in ProviderOptions": name in ProviderOptions.model_fields,
            "the name in Provider": name in get_args(get_args(Provider.__value__)[0]),
        }
    return [part for part, is_there in has.items() if not is_there]


@pytest.mark.parametrize("name", registry.LABELS)
def test_every_network_has_all_parts_of_the_checklist(name):
    network = registry.adapter(name)
    assert (network.name, network.label) == (name, registry.LABELS[name])
    assert missing_parts(network) == []


def test_a_draft_has_the_mode_that_tiktoks_options_name():
    assert registry.DRAFT_MODES == {"tiktok": tiktok_options.DRAFT}


def test_the_manual_lists_the_files_and_parts():
    _, _, section = topic("development").read_text().partition("\n## Add a network\n")
    assert [file for file in FILES if f"| `{file}` |" not in section] == []
    assert "`tests/unit/providers/test_checklist.py` fails until" in section
