"""Names that are repeated in one JSON object. A parser keeps the last value and silently drops the others."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]
MAX_LEVELS = 20
"""The maximum depth of a path. A deeper name has the path of its ancestor."""
_END_OF_NAME = re.compile(r'"[ \t\r\n]*:')


class _Object(dict[str, Any]):
    """An object with repeated names."""

    def __init__(self, members: list[tuple[str, Any]]) -> None:
        super().__init__(members)
        self.repeated = [name for name, times in Counter(name for name, _ in members).items() if times > 1]


def find(text: str, value: Any) -> Iterator[Path]:
    """Yield the path of each repeated name. `value` is the parsed text. Raises RecursionError for a deep value."""
    # A second parser is slow, so the names are counted first. A text in the JSON may look like another name.
    if len(_END_OF_NAME.findall(text)) == _count_names(value):
        return
    # Numbers remain texts, because a long number is slow to read.
    yield from _walk(json.loads(text, object_pairs_hook=_build, parse_int=str, parse_float=str), ())


def _count_names(value: Any) -> int:
    count, waiting = 0, [value]
    while waiting:
        value = waiting.pop()
        if type(value) is dict:
            count += len(value)
            waiting.extend(value.values())
        elif type(value) is list:
            waiting.extend(value)
    return count


def _build(members: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(members)
    return plain if len(plain) == len(members) else _Object(members)


def _walk(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, _Object):
        yield from ((*path, name)[:MAX_LEVELS] for name in value.repeated)
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, dict | list):
            yield from _walk(item, (*path, key)[:MAX_LEVELS])
