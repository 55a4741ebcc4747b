"""Metrics of notifications. A service is named by the scheme and the host of its address."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from socialpub.db import notifications
from socialpub.db.transaction import Reader
from socialpub.web.metrics.shapes import counter, gauge


def families(reader: Reader) -> Iterator[Metric]:
    services = notifications.services(reader)
    yield counter(
        "socialpub_notifications",
        "Messages to the owner that a service took (sent), and tries that failed",
        ["service", "outcome"],
        [
            (service.name, outcome, count)
            for service in services
            for outcome, count in (("sent", service.sent), ("failed", service.failed))
        ],
    )
    yield gauge(
        "socialpub_notifications_waiting",
        "Messages to the owner that a service has not taken yet",
        ["service"],
        [(service.name, service.waiting) for service in services],
    )
    yield gauge(
        "socialpub_notifications_failing",
        "1 while the last try to reach a service failed",
        ["service"],
        [(service.name, int(service.failing_since is not None)) for service in services],
    )
