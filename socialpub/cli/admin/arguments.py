"""Arguments that several commands take, checked before anything is opened."""

from datetime import timedelta
from typing import Any

import click


class Id(click.ParamType[str]):
    """An id as `list-…` shows it, in its one spelling."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from socialpub.core import ids

        known = ids.parse(str(value))
        if known is None:
            self.fail(f"{value!r} is no id: it looks like 019a4c8e-7c1b-7a55-9f0e-3b1f0c2d4e5f.", param, ctx)
        return known


class Duration(click.ParamType[timedelta]):
    """`90s`, `15m`, `24h`, `90d`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        from socialpub.core import durations

        if isinstance(value, timedelta):
            return value
        try:
            duration = durations.parse(str(value))
        except ValueError as error:
            self.fail(f"{value!r}: {error}.", param, ctx)
        if not duration:
            self.fail("it must be longer than nothing.", param, ctx)
        return duration


ID = Id()
DURATION = Duration()
