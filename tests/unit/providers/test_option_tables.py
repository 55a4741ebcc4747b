"""What the tables say about options is what the networks are sent: people and documents read them."""

from types import SimpleNamespace
from typing import Any

import pytest

from socialpub.providers.base import Content
from socialpub.providers.options import Option
from socialpub.providers.pinterest import upload
from socialpub.providers.registry import OPTIONS
from socialpub.providers.tiktok import upload as upload_tiktok
from socialpub.providers.x import options as x_options

EVERY_OPTION = [pytest.param(name, option, id=option.name) for name, table in OPTIONS.items() for option in table]
WITH_DEFAULT = [param for param in EVERY_OPTION if param.values[1].default is not None]
NEEDED = {"tiktok": {"privacyLevel": "SELF_ONLY"}}


def sent(network: str, chosen: dict[str, Any]) -> list[Any]:
    """What the network is told about a post with these options, in every kind of call that carries any."""
    job: Any = SimpleNamespace(options=chosen, content=Content("Hello", ()), memo={"video": {"id": "1"}})
    if network == "x":
        return [x_options.body_fields(chosen)]
    if network == "tiktok":
        return [upload_tiktok.post_info(job), upload_tiktok.request_body(job, [])]
    return [upload.video_source(job)]


@pytest.mark.parametrize(("network", "option"), EVERY_OPTION)
def test_every_option_says_what_it_does_and_what_each_of_its_values_means(network: str, option: Option) -> None:
    assert option.meaning.endswith(".")
    for value in option.values:
        assert f"`{value}`" in option.meaning


@pytest.mark.parametrize(("network", "option"), WITH_DEFAULT)
def test_a_default_that_is_given_changes_nothing(network: str, option: Option) -> None:
    chosen = NEEDED.get(network, {})
    assert sent(network, {**chosen, option.name: option.default}) == sent(network, chosen)


@pytest.mark.parametrize(("network", "option"), WITH_DEFAULT)
def test_what_is_no_default_changes_something(network: str, option: Option) -> None:
    chosen, other = NEEDED.get(network, {}), None
    match option.default:
        case bool():
            other = not option.default
        case int():
            other = option.default + 1
        case str():
            other = next(value for value in option.values if value != option.default)
    assert sent(network, {**chosen, option.name: other}) != sent(network, chosen)
