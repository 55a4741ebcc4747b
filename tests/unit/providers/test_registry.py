"""A network is registered in one place; these are the few others that name it, and whoever adds one is told of each."""

from typing import get_args

from socialpub.core.settings.networks import NetworkSection
from socialpub.core.settings.schema import ProvidersSection
from socialpub.providers import registry
from socialpub.sandbox import World
from socialpub.web.api.drafts import ProviderOptions
from socialpub.web.api.requests import Provider


def test_every_network_has_a_section_of_the_configuration() -> None:
    sections = ProvidersSection()
    assert set(ProvidersSection.model_fields) == set(registry.PROVIDERS)
    for name, provider in registry.build(sections).items():
        assert isinstance(getattr(sections, name), NetworkSection)
        assert (provider.name, provider.label) == (name, registry.LABELS[name])


def test_every_network_is_in_the_documents_of_the_api() -> None:
    assert get_args(get_args(Provider.__value__)[0]) == registry.PROVIDERS
    assert tuple(ProviderOptions.model_fields) == registry.PROVIDERS


def test_every_network_is_played_by_the_sandbox() -> None:
    assert set(World().networks) == set(registry.PROVIDERS)
