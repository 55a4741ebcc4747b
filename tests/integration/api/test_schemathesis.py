"""The running API against its own document: schemathesis finds no 5xx and no answer that the document does not know.

The same examples every time, the appliance's own ids among them, so that what is there is asked for as well.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from tests.integration.api.fuzzed_appliance import CHECKS_OF_ALL, FuzzedAppliance, fuzzed_appliance, known_document

EXAMPLES = 20
"""Of each operation, beside those that the document's own examples and limits make."""


@pytest.fixture(scope="module")
def appliance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FuzzedAppliance]:
    with fuzzed_appliance(tmp_path_factory.mktemp("appliance")) as appliance:
        yield appliance


schema = schemathesis.openapi.from_dict(known_document())


@schema.parametrize()
@settings(
    max_examples=EXAMPLES, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)
def test_every_answer_is_in_the_document(case: Any, appliance: FuzzedAppliance) -> None:
    response = case.call(**appliance.call())
    case.validate_response(response, checks=CHECKS_OF_ALL, transport_kwargs=appliance.call())
    appliance.begin_anew()
