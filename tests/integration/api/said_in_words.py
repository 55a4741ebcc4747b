"""What the document says in words alone, since a schema that says it is a choice that generators of clients stumble
over; so a request that breaks such a schema may be fine all the same."""

from typing import Any

from schemathesis.checks import CheckContext
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi import checks

from tests.integration.api.client import errors

EMPTY_MEANS_DEFAULT = {"page", "perPage", "limit", "offset"}


def negative_data_rejection(ctx: CheckContext, response: Any, case: Any) -> bool | None:
    """What the document refuses is refused, but for what it allows in words."""
    return None if _is_fine_in_words(case) else checks.negative_data_rejection(ctx, response, case)


def _is_fine_in_words(case: Any) -> bool:
    data = case.meta.phase.data
    if data.parameter_location is ParameterLocation.QUERY:
        names = {data.parameter, *(one.parameter for one in data.mutations)} - {None}
        return bool(names) and all(_is_left_to_default(name, case.query.get(name)) for name in names)
    if data.parameter_location is ParameterLocation.BODY and isinstance(case.body, dict):
        shape = case.operation.schema.raw_schema["paths"][case.path][case.method.lower()]["requestBody"]["content"]
        return not errors(_without_options(case.body), shape[case.media_type]["schema"]["$ref"].rpartition("/")[2])
    return False


def _is_left_to_default(name: str, value: Any) -> bool:
    values = value if isinstance(value, list) else [value]
    return name in EMPTY_MEANS_DEFAULT and all(one in ("", "null", None) for one in values)


def _without_options(body: dict[str, Any]) -> dict[str, Any]:
    """A wrong option is no wrong request: it fails its delivery."""
    options = body.get("providerOptions")
    if not isinstance(options, dict):
        return body
    return {**body, "providerOptions": {name: {} if isinstance(one, dict) else one for name, one in options.items()}}
