"""The settings of MCP clients lead to the appliance's endpoint, with the key."""

import json
import re
import tomllib
from typing import Any

import httpx2
import yaml
from click.testing import CliRunner

from socialpub.cli.main import main
from socialpub.core.post_summary import Result
from tests.integration.callers.conftest import example, run

BASE_URL = "http://127.0.0.1:8000"
MCP = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


def settings(client: str, position: int = 0) -> dict[str, Any]:
    """Return the entry of socialpub in a client's settings."""
    if client == "Codex":
        return dict(tomllib.loads(example("Codex", "toml"))["mcp_servers"]["socialpub"])
    read = json.loads(example(client, "json", position))
    return dict(read.get("mcpServers", read.get("servers"))["socialpub"])


def request(client: str, key: str) -> tuple[str, dict[str, str]]:
    """Return the URL and the headers that the client sends with these settings."""
    entry = settings(client, position=1 if client == "Claude Desktop" else 0)
    if client == "Codex":
        assert entry["bearer_token_env_var"] == "SOCIALPUB_KEY"
        return entry["url"], {"Authorization": f"Bearer {key}"}
    if client == "Claude Desktop":
        *_, url, option, header = entry["args"]
        assert (option, entry["command"]) == ("--header", "npx")
        name, _, value = header.partition(":")
        return url, {name: value.replace("${AUTHORIZATION}", entry["env"]["AUTHORIZATION"]).replace("KEY", key)}
    variable = {
        "Claude Code": "SOCIALPUB_KEY",
        "Cursor": "env:SOCIALPUB_KEY",
        "Visual Studio Code": "input:socialpub-key",
    }
    headers = {name: value.replace(f"${{{variable[client]}}}", key) for name, value in entry["headers"].items()}
    return entry["url"], headers


def test_the_settings_of_each_client_reach_the_appliance(url, key):
    with httpx2.Client(trust_env=False, verify=False) as http:
        for client in ("Claude Code", "Cursor", "Visual Studio Code", "Codex", "Claude Desktop"):
            address, headers = request(client, key)
            response = http.post(address.replace(BASE_URL, url), headers=headers, json=MCP)
            assert response.status_code == 200, client
            assert response.json()["result"]["serverInfo"]["name"] == "socialpub"


def test_the_program_that_claude_desktop_starts_reaches_the_appliance(programs, tmp_path):
    entry = settings("Claude Desktop")
    given = {"SOCIALPUB_URL": programs["SOCIALPUB_URL"], "SOCIALPUB_KEY": programs["SOCIALPUB_KEY"]}
    assert entry["env"] == {"SOCIALPUB_URL": BASE_URL, "SOCIALPUB_KEY": "KEY"}
    env = {name: programs[name] for name in ("PATH", "PYTHONPATH", "HOME")} | given
    command = [entry["command"].replace("/usr/local/bin/", ""), *entry["args"]]
    done = run(command, env, tmp_path, stdin=f"{json.dumps(MCP)}\n")
    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "socialpub"


def test_the_skill_has_the_front_matter_that_agents_read_and_explains_every_exit_code():
    _, front, body = CliRunner().invoke(main, ["config", "--skill"]).stdout.split("---\n", 2)
    read = yaml.safe_load(front)
    assert read["name"] == "socialpub" and 100 < len(read["description"]) <= 1024
    codes = {int(code) for code in re.findall(r"^\| (\d) \|", body, re.MULTILINE)}
    assert codes == {*map(int, Result), 2, 4}
    [unknown] = re.findall(r"^\| 3 \|.*", body, re.MULTILINE)
    assert "Do not publish again" in unknown


def test_the_calls_of_the_skill_are_answered(env, tmp_path):
    skill = CliRunner().invoke(main, ["config", "--skill"]).stdout.replace("\\\n", " ")
    calls = [
        line.replace("/ID/", f"/{env['PROFILE']}/").replace('"ID"', f'"{env["PROFILE"]}"')
        for line in skill.splitlines()
        if line.strip().startswith("curl")
    ]
    choices, check = (json.loads(run(["bash", "-c", call], env, tmp_path).stdout)["data"] for call in calls)
    assert choices["profileId"] == check["deliveries"][0]["profileId"] == env["PROFILE"]
