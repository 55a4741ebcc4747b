"""The faults because of which Bluesky would refuse a post."""

from collections.abc import Mapping
from typing import Any

from socialpub.core.errors import FieldError
from socialpub.providers.auth import Account
from socialpub.providers.base import Content


def list_problems(content: Content, options: Mapping[str, Any], account: Account) -> list[FieldError]:  # noqa: ARG001
    return []


def list_notes(content: Content, options: Mapping[str, Any], account: Account | None = None) -> list[str]:  # noqa: ARG001
    return []
