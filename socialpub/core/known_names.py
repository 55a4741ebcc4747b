"""Names in data that somebody gave: which are known where, and where an unknown one was probably meant to stand.

A name at the wrong place is told where it belongs, since "leave it out" would change what happens: a post whose
`scheduledAt` is left out is published now.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel

from socialpub.core.spelling import folded, nearest, unknown

SURELY = 0.75
"""How near a name must be for another place than its own to be meant."""


@dataclass(frozen=True, slots=True)
class AlsoCalled:
    """Annotates a field: other names that people try for it."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Keys:
    """Annotates a field that takes any object: the keys that mean something in it."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Inner:
    """The model inside of a field: the value itself, or the items of its list."""

    model: type[BaseModel]
    listed: bool


@cache
def fields_of(model: type[BaseModel]) -> dict[str, Inner | None]:
    """The names that a model's object may have, each with the model inside of it."""
    return {field.alias or name: _inner(field.annotation, listed=False) for name, field in model.model_fields.items()}


def advice(root: type[BaseModel], place: str, name: str) -> str:
    """The message for a name that is not known at a place of `root`: `""`, `post`, `media[]`."""
    places = _places(root)
    here = places.get(place, {})
    same = folded(name)
    found = next((known for known in here if same in _foldings(known, here[known])), None)
    if found is not None:
        return unknown(found)
    elsewhere = [
        (f"{other}.{known}".lstrip("."), known, more)
        for other, names in places.items()
        if other != place
        for known, more in names.items()
    ]
    exact = [full for full, known, _ in elsewhere if known == name]
    if exact:
        return f"belongs in {' or '.join(exact)}"
    alike = [full for full, known, more in elsewhere if same in _foldings(known, more)]
    if alike:
        return unknown(" or ".join(alike))
    near = nearest(name, here, SURELY)
    if near is None:
        surely = nearest(name, (known for _, known, _ in elsewhere), SURELY)
        near = next((full for full, known, _ in elsewhere if known == surely), None) or nearest(name, here)
    return unknown(near, here)


def _foldings(name: str, more: tuple[str, ...]) -> set[str]:
    return {folded(name), *map(folded, more)}


@cache
def _places(root: type[BaseModel]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Each place with the names that are known there, and what else they are called."""
    return dict(_walk(root, ""))


def _walk(model: type[BaseModel], place: str) -> Iterator[tuple[str, dict[str, tuple[str, ...]]]]:
    names: dict[str, tuple[str, ...]] = {}
    for field, (name, inner) in zip(model.model_fields.values(), fields_of(model).items(), strict=True):
        names[name] = next((one.names for one in field.metadata if isinstance(one, AlsoCalled)), ())
        below = f"{place}.{name}".lstrip(".")
        if inner is not None:
            yield from _walk(inner.model, f"{below}[]" if inner.listed else below)
        for one in field.metadata:
            if isinstance(one, Keys):
                yield below, dict.fromkeys(one.names, ())
    yield place, names


def _inner(annotation: Any, *, listed: bool) -> Inner | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return Inner(annotation, listed)
    listed = listed or getattr(annotation, "__origin__", None) in (list, tuple)
    return next((found for part in get_args(annotation) if (found := _inner(part, listed=listed))), None)
