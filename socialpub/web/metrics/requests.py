"""Metrics of the requests that this web process has answered since it began."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import Metric

from socialpub.web.metrics.shapes import counter


def families(answers: Counter[tuple[str, str, int]]) -> Iterator[Metric]:
    yield counter(
        "socialpub_http_answers",
        "Answers of this web process; route is an address as it is documented, or none, and status 0 means that the "
        "caller went away",
        ["route", "method", "status"],
        [(route, method, str(status), count) for (route, method, status), count in sorted(answers.items())],
    )
