"""Fields of what a network keeps, as JSON data: for the journal and for the control API."""

from collections.abc import Iterable
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import Any


def json_facts(kept: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: _json_value(getattr(kept, name)) for name in names}


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple | list):
        return [_json_value(item) for item in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
