"""JSON bodies and their shapes: what the API document allows, and nothing else."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from socialpub.sandbox.request import SandboxRequest
from socialpub.sandbox.x import problems
from socialpub.sandbox.x.switches import XSwitches

Finding = tuple[str, Any, str]
"""Path, what stood there, what is wrong with it."""
XSchemaRule = Callable[[str, Any], Iterator[Finding]]

DIGITS = re.compile(r"[0-9]{1,19}")


def json_object(x: XSwitches, request: SandboxRequest) -> dict[str, Any]:
    """The body, which must be one JSON object declared as such."""
    if not request.body:
        raise problems.invalid(x, "Request body must be a JSON object.")
    if request.content_type != "application/json":
        raise problems.invalid(x, "Requests with bodies must have content-type of application/json.")
    try:
        body = json.loads(request.body)
    except ValueError:
        raise problems.invalid(x, "Request body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise problems.invalid(x, "Request body must be a JSON object.")
    return body


def require_valid(x: XSwitches, rule: XSchemaRule, body: Any) -> None:
    """400 with everything that is wrong with the body."""
    found = list(rule("$", body))
    if found:
        raise problems.invalid_fields(
            x, [({path.removeprefix("$."): [str(value)[:200]]}, f"{path}: {message}") for path, value, message in found]
        )


def text(low: int = 0, high: int | None = None) -> XSchemaRule:
    def check(path: str, value: Any) -> Iterator[Finding]:
        if not isinstance(value, str):
            yield path, value, "string expected"
        elif len(value) < low or (high is not None and len(value) > high):
            yield path, value, f"must be {low} to {high} characters long"

    return check


def boolean(path: str, value: Any) -> Iterator[Finding]:
    if not isinstance(value, bool):
        yield path, value, "boolean expected"


def number(low: int, high: int) -> XSchemaRule:
    def check(path: str, value: Any) -> Iterator[Finding]:
        if not isinstance(value, int) or isinstance(value, bool):
            yield path, value, "integer expected"
        elif not low <= value <= high:
            yield path, value, f"must be between {low} and {high}"

    return check


def digits(path: str, value: Any) -> Iterator[Finding]:
    if not isinstance(value, str) or not DIGITS.fullmatch(value):
        yield path, value, "does not match the regex pattern ^[0-9]{1,19}$"


def one_of(*allowed: str) -> XSchemaRule:
    def check(path: str, value: Any) -> Iterator[Finding]:
        if value not in allowed or not isinstance(value, str):
            yield path, value, f"does not have a value in the enumeration {list(allowed)}"

    return check


def array_of(rule: XSchemaRule, low: int, high: int) -> XSchemaRule:
    def check(path: str, value: Any) -> Iterator[Finding]:
        if not isinstance(value, list):
            yield path, value, "array expected"
            return
        if not low <= len(value) <= high:
            yield path, value, f"there must be {low} to {high} items in the array"
        for index, item in enumerate(value):
            yield from rule(f"{path}[{index}]", item)

    return check


def object_of(fields: dict[str, XSchemaRule], *required: str, open_ended: bool = False) -> XSchemaRule:
    def check(path: str, value: Any) -> Iterator[Finding]:
        if not isinstance(value, dict):
            yield path, value, "object expected"
            return
        for name in required:
            if name not in value:
                yield f"{path}.{name}", "", "is missing but it is required"
        for name, item in value.items():
            if name in fields:
                yield from fields[name](f"{path}.{name}", item)
            elif not open_ended:
                yield (
                    f"{path}.{name}",
                    item,
                    "is not defined in the schema and the schema does not allow additional properties",
                )

    return check
