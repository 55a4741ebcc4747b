"""What the owner can be needed for: the names that the configuration, the rows and the messages share."""

from enum import StrEnum


class CauseKind(StrEnum):
    ACCOUNT = "account"
    """An account must be connected again, now or within a week."""

    DELIVERY = "delivery"
    """A delivery failed, or its outcome is unknown."""

    DRAFT = "draft"
    """A draft arrived in the network's app, where the owner finishes it."""

    NETWORK = "network"
    """A network refuses the whole app."""

    WORKER = "worker"
    """Deliveries are overdue, or the worker does not report or was away."""

    DISK = "disk"
    """There is little room left, or too little."""

    COPY = "copy"
    """The last copy is old, or failed."""

    CLOCK = "clock"
    """The clock was set."""

    PAUSED = "paused"
    """Publishing has been paused for long, as a restored copy is until it is resumed."""
