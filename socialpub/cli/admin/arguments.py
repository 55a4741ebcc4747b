"""Arguments that several commands take."""

from datetime import timedelta
from typing import Any

import click

from socialpub.core import ids, units
from socialpub.providers.provider import Provider
from socialpub.runtime import Runtime


class IdType(click.ParamType[str]):
    """An id as `list-…` shows it, in its canonical form."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        known = ids.parse(str(value))
        if known is None:
            self.fail(f"{value!r} is not an id, such as 019a4c8e-7c1b-7a55-9f0e-3b1f0c2d4e5f.", param, ctx)
        return known


class DurationType(click.ParamType[timedelta]):
    """`90s`, `15m`, `24h`, `90d`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        try:
            duration = units.parse_duration(str(value))
        except ValueError as error:
            self.fail(f"{value!r}: {error}.", param, ctx)
        if not duration:
            self.fail("it must be longer than zero.", param, ctx)
        return duration


ID = IdType()
DURATION = DurationType()


def known_provider(rt: Runtime, name: str) -> Provider:
    """Return the network of the argument PROVIDER."""
    if name not in rt.providers:
        raise click.BadParameter(f"{name!r} is none of {', '.join(rt.providers)}.", param_hint="PROVIDER")
    return rt.providers[name]
