"""Home Assistant: the settings of the manual are read, rendered and sent as Home Assistant does."""

import json
from typing import Any, ClassVar
from urllib.parse import urlsplit

import httpx2
import jinja2
import yaml

from tests.integration.callers.conftest import example
from tests.support.drain import drain


class SecretsLoader(yaml.SafeLoader):
    """Reads `!secret NAME` as Home Assistant does."""

    secrets: ClassVar[dict[str, str]] = {}


SecretsLoader.add_constructor("!secret", lambda loader, node: loader.secrets[node.value])


def render(template: str, **variables: Any) -> str:
    templates = jinja2.Environment(undefined=jinja2.StrictUndefined)
    templates.filters |= {"to_json": json.dumps, "from_json": json.loads}
    return templates.from_string(template).render(**variables)


def act(command: dict[str, Any], url: str, data: dict[str, Any]) -> dict[str, Any]:
    """Call the action, and return what `response_variable` contains.

    Home Assistant decodes a body only if its type is exactly application/json (components/rest_command/__init__.py).
    """
    split = urlsplit(render(command["url"], **data))
    headers = {name: render(value, **data) for name, value in command["headers"].items()}
    response = httpx2.request(
        command["method"],
        f"{url}{split.path}?{split.query}",
        headers=headers | {"content-type": command["content_type"]},
        content=render(command["payload"], **data),
        trust_env=False,
        verify=False,
    )
    is_json = response.headers["content-type"] == "application/json"
    return {"status": response.status_code, "content": response.json() if is_json else response.text}


class Now:
    def strftime(self, _: str) -> str:
        return "18:00"


class Context:
    id = "01KAR8N0D9Y4N9QVY2YB6Q7D6V"


def test_a_script_publishes_an_image(url, key, profile, image_url, rt, three_networks):
    secrets = yaml.safe_load(example("Home Assistant", "yaml", 1))
    SecretsLoader.secrets = {name: value.replace("KEY", key) for name, value in secrets.items()}
    command = yaml.load(example("Home Assistant", "yaml", 0), SecretsLoader)["rest_command"]["socialpub_post"]
    _, call, failure = yaml.safe_load(example("Home Assistant", "yaml", 2))["script"]["publish_garden"]["sequence"]
    assert call["action"] == "rest_command.socialpub_post"
    written = {
        name: render(value, now=Now, context=Context) if isinstance(value, str) else value
        for name, value in call["data"].items()
    }
    data = written | {"profiles": [profile], "image": image_url}
    answer = act(command, url, data)
    assert render(failure["if"], answer=answer) == "False", answer
    assert answer["content"]["data"]["media"][0]["alt"] == "A garden in the evening"
    drain(rt)
    assert three_networks["x"].effects == ["The garden at 18:00"]

    refused = act(command, url, {**data, "image": f"{image_url}.missing", "once": "another"})
    assert render(failure["if"], answer=refused) == "True"
    [notify] = failure["then"]
    assert "media[0].url answered 404" in render(notify["data"]["message"], answer=refused)
