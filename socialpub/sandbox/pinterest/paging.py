"""Lists in pages, with a bookmark that nobody can read."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from socialpub.sandbox.call import Answer, Call, Refusal

if TYPE_CHECKING:
    from socialpub.sandbox.pinterest.network import Pinterest

T = TypeVar("T")


def paged(pinterest: "Pinterest", call: Call, found: Sequence[T], show: Callable[[T], Any]) -> Answer:
    query = call.query()
    written = query.get("page_size", "25")
    if not written.isdecimal() or not 1 <= int(written) <= 250:
        raise Refusal(pinterest.error(400, 1, f"Invalid request: page_size {written!r} is not between 1 and 250."))
    size, begin = int(written), _begin(pinterest, query.get("bookmark", ""))
    more = begin + size < len(found)
    bookmark = base64.urlsafe_b64encode(f"from:{begin + size}".encode()).decode() if more else None
    items = [show(one) for one in found[begin : begin + size]]
    return pinterest.answer(200, {"items": items, "bookmark": bookmark})


def _begin(pinterest: "Pinterest", bookmark: str) -> int:
    if not bookmark:
        return 0
    try:
        word, _, number = base64.urlsafe_b64decode(bookmark).decode().partition(":")
    except (binascii.Error, ValueError):
        word, number = "", ""
    if word != "from" or not number.isdecimal():
        raise Refusal(pinterest.error(400, 1, "Invalid request: the bookmark is not valid."))
    return int(number)
