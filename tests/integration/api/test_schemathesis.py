"""schemathesis finds no 5xx and no undocumented response of the running API.

`make test` sends the examples of the document and a few generated requests, always the same. `make endurance` sends
every boundary case of every schema and many new requests.
"""

import copy
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, seed, settings
from schemathesis.pytest.lazy import get_all_tests

from tests.integration.api.client import document
from tests.integration.api.fuzzed_appliance import CHECKS_OF_ALL, FuzzedAppliance, fuzzed_appliance, known_document
from tests.sandbox.files import picture
from tests.support.generated import examples

FEW, MANY = 6, 100

OPERATIONS = [f"{method.upper()} {path}" for path, methods in document()["paths"].items() for method in methods]


@pytest.fixture(scope="module")
def appliance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FuzzedAppliance]:
    with fuzzed_appliance(tmp_path_factory.mktemp("appliance")) as appliance:
        yield appliance


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_response_is_documented(operation, appliance):
    schema = schemathesis.openapi.from_dict(known_document())
    schema.config.phases.coverage.enabled = False
    send(schema, operation, appliance, FEW)


@pytest.mark.endurance
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_response_to_boundary_cases_is_documented(operation, appliance, pytestconfig):
    schema = schemathesis.openapi.from_dict(known_document())
    seed = pytestconfig.getoption("--hypothesis-seed")
    if seed is not None:
        schema.config.seed = int(seed)
    send(schema, operation, appliance, MANY)


def send(schema: Any, operation: str, appliance: FuzzedAppliance, examples: int) -> None:
    def check(case: Any) -> None:
        response = case.call(**appliance.call())
        case.validate_response(response, checks=CHECKS_OF_ALL, transport_kwargs=appliance.call())
        appliance.begin_anew()

    # schemathesis' own collector would generate the requests of all operations in every pytest process.
    (made,) = get_all_tests(
        schema=schema.include(name=operation),
        test_func=check,
        settings=settings(max_examples=examples, suppress_health_check=list(HealthCheck)),
        given_kwargs={},
    )
    _, requests = made.ok()
    requests()


# --- sequences of calls ----------------------------------------------------------------------------------------------
#
# schemathesis follows the ids in responses. The links through storage and into a new post are defined here. Every
# response is validated against the document.


WAYS, STEPS, ROUNDS = (6, 150), 12, 12
PNG = picture(kind="PNG")
ID = "$response.body#/data/artifactId"


def linked_document() -> dict[str, Any]:
    """Return the document with small images as uploads, and links from uploads to artifacts and posts."""
    linked = copy.deepcopy(known_document())
    upload = linked["components"]["schemas"]["UploadRequest"]["properties"]
    upload["mimeType"] = {"type": "string", "enum": ["image/png"]}
    upload["fileSize"] = {"type": "integer", "enum": [len(PNG)]}
    paths = linked["paths"]
    paths["/api/v1/uploads"]["post"]["responses"]["201"]["links"] = {
        "complete": {"operationId": "completeUpload", "requestBody": {"artifactId": ID}}
    }
    paths["/api/v1/uploads/complete"]["post"]["responses"]["200"]["links"] = {
        name: {"operationId": name, "requestBody": {"media": [{"artifactId": ID}]}}
        for name in ("createPost", "validatePost")
    }
    uuid = document()["components"]["schemas"]["MediaReference"]["properties"]["artifactId"]
    linked["components"]["schemas"]["MediaReference"]["properties"]["artifactId"] = uuid
    return linked


@pytest.mark.hypothesis
def test_every_response_in_a_sequence_of_calls_is_documented(tmp_path):
    answered: Counter[tuple[str, int]] = Counter()
    every = set(OPERATIONS)
    went_well: set[str] = set()
    with fuzzed_appliance(tmp_path) as appliance:
        # The sequences must reach every operation.
        for number in range(ROUNDS):
            seed(number)(walker(appliance, answered)).run(
                settings=settings(
                    max_examples=examples(*WAYS),
                    stateful_step_count=STEPS,
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                )
            )
            went_well = {name for name, status in answered if status < 300}
            if went_well == every:
                break
    assert went_well == every


def walker(appliance: FuzzedAppliance, answered: Counter[tuple[str, int]]) -> Any:
    """Return the state machine for this appliance. It counts the responses."""

    class Walker(schemathesis.openapi.from_dict(linked_document()).as_state_machine()):  # type: ignore[misc]
        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            return appliance.call()

        def after_call(self, response: Any, case: Any) -> None:
            super().after_call(response, case)
            answered[case.operation.label, response.status_code] += 1
            if case.operation.label == "POST /api/v1/uploads" and response.status_code == 201:
                appliance.put(response.json()["data"], PNG)

        def validate_response(self, response: Any, case: Any, additional_checks: Any = None, **kwargs: Any) -> None:
            case.validate_response(response, checks=CHECKS_OF_ALL, transport_kwargs=appliance.call())

        def teardown(self) -> None:
            super().teardown()
            appliance.begin_anew()

    return Walker
