"""The running API against its own document: schemathesis finds no 5xx and no answer that the document does not know.

`make test` sends the document's own examples and a few generated requests, the same every time, with the appliance's
own ids among them. `make endurance` sends every boundary case of every schema, and many fresh requests.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.pytest.lazy import get_all_tests

from tests.integration.api.client import document
from tests.integration.api.fuzzed_appliance import CHECKS_OF_ALL, FuzzedAppliance, fuzzed_appliance, known_document

FEW, MANY = 6, 100
"""Generated requests of each operation."""

OPERATIONS = [f"{method.upper()} {path}" for path, methods in document()["paths"].items() for method in methods]


@pytest.fixture(scope="module")
def appliance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FuzzedAppliance]:
    with fuzzed_appliance(tmp_path_factory.mktemp("appliance")) as appliance:
        yield appliance


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_answer_is_in_the_document(operation: str, appliance: FuzzedAppliance) -> None:
    schema = schemathesis.openapi.from_dict(known_document())
    schema.config.phases.coverage.enabled = False
    send(schema, operation, appliance, FEW)


@pytest.mark.endurance
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_answer_to_every_boundary_case_is_in_the_document(
    operation: str, appliance: FuzzedAppliance, pytestconfig: pytest.Config
) -> None:
    schema = schemathesis.openapi.from_dict(known_document())
    seed = pytestconfig.getoption("--hypothesis-seed")
    if seed is not None:
        schema.config.seed = int(seed)
    send(schema, operation, appliance, MANY)


def send(schema: Any, operation: str, appliance: FuzzedAppliance, examples: int) -> None:
    """Send the requests that schemathesis makes for an operation, and check every answer."""

    def check(case: Any) -> None:
        response = case.call(**appliance.call())
        case.validate_response(response, checks=CHECKS_OF_ALL, transport_kwargs=appliance.call())
        appliance.begin_anew()

    # schemathesis' own collector makes the requests of all operations in every process that collects tests.
    (made,) = get_all_tests(
        schema=schema.include(name=operation),
        test_func=check,
        settings=settings(max_examples=examples, suppress_health_check=list(HealthCheck)),
        given_kwargs={},
    )
    _, requests = made.ok()
    requests()
