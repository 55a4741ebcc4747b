"""The document's schema of an option and the adapter that reads it are of one opinion about every value."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from socialpub.core.settings.schema import ProvidersSection
from socialpub.providers import registry
from socialpub.providers.options import Option
from socialpub.providers.registry import OPTIONS
from socialpub.web.openapi.document import option_component, option_schemas

ADAPTERS = registry.build(ProvidersSection(), OPTIONS)
SCHEMAS = option_schemas(tuple(OPTIONS))
EVERY_OPTION = [pytest.param(name, option, id=option.name) for name, table in OPTIONS.items() for option in table]
ARTIFACT = "01a12f57-1a80-7074-9d08-074dfc0027ba"
PROBES: list[Any] = [
    True, False, 0, 1, -1, 5, 10**6, 2**31, 1.5, "", " ", "true", "1", "12", "1" * 19, "1" * 20, "-1", "x", "x" * 90,
    "x" * 91, "x" * 100, "x" * 101, "a name", "http://example.com", "HTTPS://example.com/a?b#c", "ftp://example.com",
    "example.com", "http://exa mple.com", "http://example.com/" + "x" * 2029, "http://example.com/" + "x" * 2030,
    "#6E7874", "#6e787", "6E7874", [], {}, [1], ["AI_MODIFIED"], ["AI_MODIFIED", "AI_MODIFIED"], ["ai_modified"],
    ["AI_MODIFIED", "SYNTHETIC_PERFORMER"], ARTIFACT, ["en"], ["en", "pt-BR"], ["en", "en"], ["en", "de", "fr"],
    ["en", "de", "fr", "nl"], ["not a tag"], [""],
]  # fmt: skip


def probes(option: Option) -> list[Any]:
    limits = [] if option.maximum is None else [option.maximum, option.maximum + 1]
    lists = [[value] for value in option.values]
    return [*PROBES, *option.values, *lists, *(value.upper() + "_" for value in option.values), *limits]


@pytest.mark.parametrize(("network", "option"), EVERY_OPTION)
def test_what_the_document_describes_is_what_the_adapter_takes(network, option):
    schema = Draft202012Validator(
        SCHEMAS[option_component(network)]["properties"][option.name], format_checker=FormatChecker()
    )
    taken = []
    for value in probes(option):
        _, problems = ADAPTERS[network].read_options({option.name: value})
        if option.type == "artifact" and isinstance(value, str) and value != ARTIFACT:
            continue  # whether an id is an artifact's is asked of the rows, not of the adapter
        assert schema.is_valid(value) is not bool(problems), (value, problems)
        taken += [] if problems else [value]
    assert taken


@pytest.mark.parametrize("network", OPTIONS)
def test_every_option_of_the_adapter_is_described_and_no_other(network):
    schema = SCHEMAS[option_component(network)]
    assert list(schema["properties"]) == [option.name for option in OPTIONS[network]]
    assert schema["additionalProperties"] is True
    assert "required" not in schema
    assert "snake_case" in schema["description"]
    assert "`null`" in schema["description"]


@pytest.mark.parametrize("network", OPTIONS)
def test_the_example_is_taken_by_the_adapter(network):
    schema = SCHEMAS[option_component(network)]
    (example,) = schema["examples"]
    assert len(example) > 1
    assert ADAPTERS[network].read_options(example) == (example, [])
    Draft202012Validator(schema).validate(example)


@pytest.mark.parametrize(("network", "option"), EVERY_OPTION)
def test_a_default_is_only_in_the_description(network, option):
    schema = SCHEMAS[option_component(network)]["properties"][option.name]
    assert "default" not in schema
    if option.default is not None:
        shown = str(option.default).lower() if isinstance(option.default, bool) else str(option.default)
        assert schema["description"].endswith(f"Default: `{shown}`.")
