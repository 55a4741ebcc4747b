"""Metric families from rows. Labels have few values, whatever callers send: a series lives as long as its store."""

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

Rows = Iterable[tuple[str | int | float, ...]]
"""Of each row the last value is the number, those before are its labels."""


def gauge(name: str, meaning: str, labels: list[str], rows: Rows) -> GaugeMetricFamily:
    """What goes up and down."""
    family = GaugeMetricFamily(name, meaning, labels=labels)
    _fill(family, rows)
    return family


def counter(name: str, meaning: str, labels: list[str], rows: Rows) -> CounterMetricFamily:
    """What only grows; `name` without its `_total`."""
    family = CounterMetricFamily(name, meaning, labels=labels)
    _fill(family, rows)
    return family


def one(name: str, meaning: str, value: float) -> GaugeMetricFamily:
    """A single number that goes up and down."""
    return GaugeMetricFamily(name, meaning, value=value)


def _fill(family: GaugeMetricFamily | CounterMetricFamily, rows: Rows) -> None:
    for row in rows:
        family.add_metric([str(value) for value in row[:-1]], float(row[-1]))
