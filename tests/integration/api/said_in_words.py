"""What the document says in words alone, since a schema that says it is a choice that generators of clients stumble
over; so a request that breaks such a schema may be fine all the same."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

from schemathesis.checks import CheckContext
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi import checks

from tests.integration.api.client import document, errors

REASONS = (
    "is not the id of", "is disconnected", "can no longer be reached", "was rejected", "belongs to no selected profile",
    "must be in the future", "is required when there is no media", "can be empty only if the post has a body",
    "needs exactly one of fileField and artifactId", "send at least one field", "is not accepted; use one of",
    "has no such file part", "which an earlier media item already names", "has no item with fileField",
    "is the only text field",
    "the limit for images is",
    "not a decimal number",  # 5.0 is a whole number to JSON Schema
)  # fmt: skip
"""Why a well-formed request may be refused: what is there, what time it is, and rules of several fields."""

EMPTY_MEANS_DEFAULT = {"page", "perPage", "limit", "offset"}


def negative_data_rejection(ctx: CheckContext, response: Any, case: Any) -> bool | None:
    """What the document refuses is refused, but for what it allows in words and for what was put right before it was
    sent."""
    if all(_is_fine(case, location, response.request.url) for location in _wrong_places(case)):
        return None
    return checks.negative_data_rejection(ctx, response, case)


def positive_data_acceptance(ctx: CheckContext, response: Any, case: Any) -> bool | None:
    """What the document's schemas allow is accepted, or refused for a reason that the document gives in words."""
    if response.status_code == 400:
        messages = [error["message"] for error in response.json()["errors"]]
        if all(any(reason in message for reason in REASONS) for message in messages) or _asks_networks(case):
            return None
    return checks.positive_data_acceptance(ctx, response, case)


def _asks_networks(case: Any) -> bool:
    """Whether what a network would refuse is refused as well."""
    return case.path == "/api/v1/posts" and str(case.query.get("strict")).lower() == "true"


def _wrong_places(case: Any) -> set[Any]:
    """Where something is still wrong when it is sent: a link puts what it knows in the place of a body, which the
    library judges anew then."""
    data = case.meta.phase.data
    places = {one.parameter_location for one in data.mutations} or {data.parameter_location}
    return {
        place for place in places if place not in case.meta.components or case.meta.components[place].mode.is_negative
    }


def _is_fine(case: Any, place: Any, url: str) -> bool:
    """Return whether the part of the sent request that breaks a schema is allowed in words."""
    data = case.meta.phase.data
    names = {one.parameter for one in data.mutations if one.parameter_location is place}
    if data.parameter_location is place:
        names.add(data.parameter)
    names.discard(None)
    if place is ParameterLocation.HEADER:
        return names == {"Authorization"}  # every call has the key, whatever was drawn
    if place is ParameterLocation.QUERY:
        declared = {one["name"] for one in document()["paths"][case.path][case.method.lower()]["parameters"]}
        # Only what the address says counts: an empty list or object is sent as nothing, or not at all.
        sent = parse_qsl(urlsplit(url).query, keep_blank_values=True)
        wrong = names & declared
        return {name for name, _ in sent} <= declared and all(
            name in EMPTY_MEANS_DEFAULT and value in ("", "null") for name, value in sent if name in wrong
        )
    if place is ParameterLocation.BODY and isinstance(case.body, dict):
        shapes = document()["paths"][case.path][case.method.lower()]["requestBody"]["content"]
        shape, body = shapes[case.media_type]["schema"]["$ref"].rpartition("/")[2], case.body
        if shape == "PostForm":
            shape, body = "FormDraft", case.body.get("payload")
        return isinstance(body, dict) and not errors(_without_options(body), shape)
    return False


def _without_options(body: dict[str, Any]) -> dict[str, Any]:
    """A wrong option is no wrong request: it fails its delivery."""
    options = body.get("providerOptions")
    if not isinstance(options, dict):
        return body
    return {**body, "providerOptions": {name: {} if isinstance(one, dict) else one for name, one in options.items()}}
