"""The running API against its own document: schemathesis finds no 5xx and no answer that the document does not know.

The same examples every time, the appliance's own ids among them, so that what is there is asked for as well.
"""

import copy
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, settings
from schemathesis.checks import CHECKS
from schemathesis.specs.openapi.checks import negative_data_rejection

from socialpub.accounts import api_keys
from socialpub.core.settings.sections import RateLimitSection
from socialpub.web.app import create_app
from tests.integration.api import said_in_words
from tests.integration.api.client import document
from tests.support.appliance import accept, add_profile, open_appliance
from tests.support.hand_clock import HandClock
from tests.support.scripted_network import ScriptedNetwork

EXAMPLES = 20
"""Of each operation, beside those that the document's own examples and limits make."""

PROFILE = "019ac5d2-6b00-7a31-9f0e-4f1f6f3f7a01"
POST = "019ac5d3-1f00-7c42-8a11-7d0f2a1b3c04"


@cache
def known_document() -> dict[str, Any]:
    """The document with ids that are known to this appliance. Nobody waits here, so `wait` is left out, and every
    request brings a key that is good, so there is no other to be made up."""
    known: dict[str, Any] = copy.deepcopy(document())
    del known["security"], known["components"]["securitySchemes"]
    for path, methods in known["paths"].items():
        for operation in methods.values():
            operation["parameters"] = [one for one in operation["parameters"] if one["name"] != "wait"]
            for parameter in operation["parameters"]:
                if parameter["in"] == "path" and path.startswith("/api"):
                    parameter["example"] = PROFILE if path.startswith("/api/v1/profiles") else POST
            body = operation.get("requestBody", {"content": {}})["content"].get("application/json", {})
            if "profiles" in body.get("example", {}):
                body["example"] = {"post": {"body": "First frost."}, "profiles": [PROFILE]}
    return known


@pytest.fixture(scope="module")
def appliance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a running appliance, and a key that may do everything."""
    folder: Path = tmp_path_factory.mktemp("appliance")
    clock = HandClock()
    rt = open_appliance(
        folder,
        clock,
        providers={"x": ScriptedNetwork(), "tiktok": ScriptedNetwork(), "pinterest": ScriptedNetwork()},
        rate_limit=RateLimitSection(requests_per_minute=10**6, failed_keys_per_minute=10**6),
    )
    add_profile(rt, id=PROFILE)
    post = accept(rt, PROFILE, at=clock.now() + timedelta(days=3650))
    rt.write(lambda rt, tx: _rename(tx, post))
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(rt), log_config=None, access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}", rt.write(api_keys.create, "schemathesis")
    server.should_exit = True
    thread.join()
    listening.close()
    rt.close()


def _rename(tx: Any, post: str) -> None:
    """Give the post the id that the document names."""
    tx.execute("PRAGMA defer_foreign_keys = ON")
    tx.execute("UPDATE delivery SET post_id = ? WHERE post_id = ?", (POST, post))
    tx.execute("UPDATE post SET id = ? WHERE id = ?", (POST, post))


schema = schemathesis.openapi.from_dict(known_document())
CHECKS_OF_ALL = [
    # A well-formed request can still name a profile that nobody has, or a type that is too large for its kind.
    said_in_words.negative_data_rejection if check is negative_data_rejection else check
    for check in CHECKS.get_all()
    if check.__name__ != "positive_data_acceptance"
]


@schema.parametrize()
@settings(
    max_examples=EXAMPLES, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)
def test_every_answer_is_in_the_document(case: Any, appliance: tuple[str, str]) -> None:
    url, key = appliance
    response = case.call(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60)
    case.validate_response(response, checks=CHECKS_OF_ALL)
