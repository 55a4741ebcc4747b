"""A post as Bluesky shows it."""

from collections.abc import Mapping
from typing import Any

from socialpub.providers.auth import Account
from socialpub.providers.base import Content
from socialpub.providers.preview import Preview, TextPart


def preview_post(content: Content, options: Mapping[str, Any], account: Account) -> Preview:  # noqa: ARG001
    return Preview(text=(TextPart(content.text),), media=tuple(item.position for item in content.media))
