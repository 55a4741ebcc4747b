"""Home Assistant: the settings of the manual are read, rendered and sent as Home Assistant does."""

import json
from typing import Any, ClassVar
from urllib.parse import urlsplit

import httpx2
import jinja2
import yaml

from socialpub.runtime import Runtime
from tests.integration.callers.conftest import example
from tests.support.drain import drain
from tests.support.scripted_network import ScriptedNetwork


class SecretsLoader(yaml.SafeLoader):
    """Reads `!secret NAME` as Home Assistant does."""

    secrets: ClassVar[dict[str, str]] = {}


SecretsLoader.add_constructor("!secret", lambda loader, node: loader.secrets[node.value])


def render(template: str, **variables: Any) -> str:
    templates = jinja2.Environment(undefined=jinja2.StrictUndefined)
    templates.filters["to_json"] = json.dumps
    return templates.from_string(template).render(**variables)


def test_a_script_publishes_an_image(
    url: str, key: str, profile: str, image_url: str, rt: Runtime, three_networks: dict[str, ScriptedNetwork]
) -> None:
    secrets = yaml.safe_load(example("Home Assistant", "yaml", 1))
    SecretsLoader.secrets = {name: value.replace("KEY", key) for name, value in secrets.items()}
    command = yaml.load(example("Home Assistant", "yaml", 0), SecretsLoader)["rest_command"]["socialpub_post"]
    steps = yaml.safe_load(example("Home Assistant", "yaml", 2))["script"]["publish_garden"]["sequence"]
    [call] = [step for step in steps if step.get("action") == "rest_command.socialpub_post"]

    class Now:
        def strftime(self, _: str) -> str:
            return "18:00"

    context = type("Context", (), {"id": "01KAR8N0D9Y4N9QVY2YB6Q7D6V"})
    data = {
        name: render(value, now=Now, context=context) if isinstance(value, str) else value
        for name, value in call["data"].items()
    }
    data |= {"profiles": [profile], "image": image_url}
    split = urlsplit(render(command["url"], **data))
    response = httpx2.request(
        command["method"],
        f"{url}{split.path}?{split.query}",
        headers={name: render(value, **data) for name, value in command["headers"].items()}
        | {"content-type": command["content_type"]},
        content=render(command["payload"], **data),
        trust_env=False,
        verify=False,
    )
    assert response.status_code == 201, response.text
    assert response.json()["data"]["media"][0]["alt"] == "A garden in the evening"
    drain(rt)
    assert three_networks["x"].effects == ["The garden at 18:00"]
    answer = {"status": 400, "content": {"detail": "media must not be empty."}}
    [refused] = [step for step in steps if "if" in step]
    assert render(refused["if"], answer=answer) == "True"
    assert render(refused["then"][0]["data"]["message"], answer=answer) == "media must not be empty."
