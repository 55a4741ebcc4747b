"""JSON bodies and their shapes: what Pinterest's API document allows, and nothing else."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from socialpub.sandbox.pinterest import replies
from socialpub.sandbox.pinterest.switches import PinterestSwitches

PinterestSchemaRule = Callable[[str, Any], Iterator[str]]
"""Yields what is wrong with a value, given the name it stands under."""

DIGITS = re.compile(r"[0-9]+")
BASE64 = re.compile(r"[a-zA-Z0-9+/=]+")
URL = re.compile(r"https?://[^\s/?#]+\.?[^\s]*")
SHOWN = 200


def require_valid(pinterest: PinterestSwitches, rule: PinterestSchemaRule, body: Any, code: int = 1) -> None:
    """400 with the first thing that is wrong with the body."""
    for wrong in rule("", body):
        raise replies.invalid(pinterest, 400, code, f"Invalid request: {wrong}")


def text(low: int, high: int) -> PinterestSchemaRule:
    def check(name: str, value: Any) -> Iterator[str]:
        if not isinstance(value, str):
            yield f"{_short(value)} is not of type 'string' ({name})"
        elif not low <= len(value) <= high:
            yield f"{_short(value)} in '{name}' must have {low} to {high} characters (maxLength={high})"

    return check


def digits(name: str, value: Any) -> Iterator[str]:
    if not isinstance(value, str) or not DIGITS.fullmatch(value):
        yield f"{_short(value)} does not match '^\\\\d+$' ('{name}' must match the pattern: ^\\d+$)"


def base64_text(name: str, value: Any) -> Iterator[str]:
    if not isinstance(value, str) or not BASE64.fullmatch(value):
        yield f"'{name}' does not match '^[a-zA-Z0-9+/=]+$'"


def link(name: str, value: Any) -> Iterator[str]:
    yield from text(0, 2048)(name, value)
    if isinstance(value, str) and not URL.fullmatch(value):
        yield f"Entered URL is invalid. ({name})"


def boolean(name: str, value: Any) -> Iterator[str]:
    if not isinstance(value, bool):
        yield f"{_short(value)} is not of type 'boolean' ({name})"


def at_least_zero(name: str, value: Any) -> Iterator[str]:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        yield f"{_short(value)} is not an integer of 0 or more ({name})"


def one_of(*allowed: str) -> PinterestSchemaRule:
    def check(name: str, value: Any) -> Iterator[str]:
        if value not in allowed:
            yield f"{_short(value)} is not one of {list(allowed)} ({name})"

    return check


def array_of(rule: PinterestSchemaRule, low: int, high: int) -> PinterestSchemaRule:
    def check(name: str, value: Any) -> Iterator[str]:
        if not isinstance(value, list):
            yield f"{_short(value)} is not of type 'array' ({name})"
            return
        if not low <= len(value) <= high:
            yield f"'{name}' has {len(value)} items (minItems={low}, maxItems={high})"
        for index, item in enumerate(value):
            yield from rule(f"{name}[{index}]", item)

    return check


def object_of(
    fields: dict[str, PinterestSchemaRule], required: Iterable[str] = (), nullable: Iterable[str] = ()
) -> PinterestSchemaRule:
    needed, may_be_null = tuple(required), frozenset(nullable)

    def check(name: str, value: Any) -> Iterator[str]:
        dot = f"{name}." if name else ""
        if not isinstance(value, dict):
            yield f"{_short(value)} is not of type 'object' ({name or 'body'})"
            return
        for one in needed:
            if one not in value:
                yield f"'{dot}{one}' is a required property"
        for key, item in value.items():
            if key not in fields:
                yield f"Additional properties are not allowed ('{dot}{key}' was unexpected)"
            elif item is not None or key not in may_be_null:
                yield from fields[key](f"{dot}{key}", item)

    return check


def _short(value: Any) -> str:
    written = repr(value)
    return written if len(written) <= SHOWN else written[:SHOWN] + "…"
