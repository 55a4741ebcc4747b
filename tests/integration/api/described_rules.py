"""Rules that the document states only in descriptions, because a schema for them would be a union."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

from schemathesis.checks import CheckContext
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi import checks

from tests.integration.api.client import document, errors

REASONS = (
    "is not the id of", "is disconnected", "can no longer be reached", "was rejected",
    "does not belong to a selected profile",
    "must be in the future", "is required when there is no media", "can be empty only if the post has a body",
    "must have exactly one of", "send at least one field", "is not accepted; use one of",
    "does not contain this file part", "an earlier media item already uses this file part",
    "has no item with fileField",
    "is the only text field",
    "is only for accounts that have boards",
    "the limit for images is",
    "has no delivery to the profile", "cannot be combined with", "makes the post wait for itself",
    "must be within the years 1 to 9999 in UTC",
    "must contain a visible character",
    "not a decimal number",  # JSON Schema accepts 5.0 as an integer
)  # fmt: skip
"""Why the appliance may refuse a request that matches its schema."""


def negative_data_rejection(ctx: CheckContext, response: Any, case: Any) -> bool | None:
    """Check that invalid requests are refused, except requests that a description allows."""
    if all(_is_fine(case, location, response.request.url) for location in _wrong_places(case)):
        return None
    return checks.negative_data_rejection(ctx, response, case)


def positive_data_acceptance(ctx: CheckContext, response: Any, case: Any) -> bool | None:
    """Check that valid requests are accepted, or refused for a reason in a description."""
    if response.status_code == 400:
        messages = [error["message"] for error in response.json()["errors"]]
        if all(any(reason in message for reason in REASONS) for message in messages) or _asks_networks(case):
            return None
    return checks.positive_data_acceptance(ctx, response, case)


def _asks_networks(case: Any) -> bool:
    return case.path == "/api/v1/posts" and str(case.query.get("strict")).lower() == "true"


def _wrong_places(case: Any) -> set[Any]:
    """Return the parts of the request that are still invalid when they are sent."""
    data = case.meta.phase.data
    places = {one.parameter_location for one in data.mutations} or {data.parameter_location}
    return {
        place for place in places if place not in case.meta.components or case.meta.components[place].mode.is_negative
    }


def _is_fine(case: Any, place: Any, url: str) -> bool:
    """Return whether a description allows the invalid part of the request."""
    data = case.meta.phase.data
    names = {one.parameter for one in data.mutations if one.parameter_location is place}
    if data.parameter_location is place:
        names.add(data.parameter)
    names.discard(None)
    if place is ParameterLocation.HEADER:
        return names == {"Authorization"}  # every call has the key
    if place is ParameterLocation.QUERY:
        parameters = document()["paths"][case.path][case.method.lower()]["parameters"]
        declared = {one["name"] for one in parameters}
        may_be_empty = {one["name"] for one in parameters if one.get("allowEmptyValue")}
        # The URL does not contain an empty list or object.
        sent = parse_qsl(urlsplit(url).query, keep_blank_values=True)
        wrong = names & declared
        return {name for name, _ in sent} <= declared and all(
            name in may_be_empty and value == "" for name, value in sent if name in wrong
        )
    if place is ParameterLocation.BODY and isinstance(case.body, dict):
        shapes = document()["paths"][case.path][case.method.lower()]["requestBody"]["content"]
        shape, body = shapes[case.media_type]["schema"]["$ref"].rpartition("/")[2], case.body
        if shape == "PostForm":
            shape, body = "FormDraft", case.body.get("payload")
        return isinstance(body, dict) and not errors(_without_options(body), shape)
    return False


def _without_options(body: dict[str, Any]) -> dict[str, Any]:
    """Return the body without options, because a wrong option only fails its delivery."""
    options = body.get("providerOptions")
    if not isinstance(options, dict):
        return body
    return {**body, "providerOptions": {name: {} if isinstance(one, dict) else one for name, one in options.items()}}
