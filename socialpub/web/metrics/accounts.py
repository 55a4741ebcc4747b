"""Metrics of accounts and networks: who is connected, whose tokens end soon, and which network refuses the app."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from socialpub.accounts import profiles
from socialpub.accounts.idle_tokens import SOON
from socialpub.accounts.renewal import RefreshOutcome
from socialpub.core.clock import stamp
from socialpub.db import event_counts
from socialpub.db.event_counts import Event
from socialpub.db.transaction import Reader
from socialpub.publishing import holds
from socialpub.runtime import Runtime
from socialpub.web.metrics.shapes import counter, gauge


def families(rt: Runtime, reader: Reader) -> Iterator[Metric]:
    names = sorted(rt.providers)
    counted = {(provider, status): count for provider, status, count in profiles.count(reader)}
    yield gauge(
        "socialpub_profiles",
        "Connected accounts",
        ["provider", "status"],
        [
            (provider, status, counted.get((provider, status), 0))
            for provider in names
            for status in ("active", "reauthRequired", "disconnected")
        ],
    )
    lapsing = profiles.count_ending(reader, stamp(rt.now() + SOON))
    yield gauge(
        "socialpub_profiles_lapsing",
        "Active accounts that their owner must connect again within a week",
        ["provider"],
        [(provider, lapsing.get(provider, 0)) for provider in names],
    )
    refreshed = {(provider, outcome): count for provider, _, outcome, count in event_counts.read(reader, Event.REFRESH)}
    yield counter(
        "socialpub_token_refreshes",
        "New tokens that a network was asked for; refused ones cost the account's connection, failed ones are repeated",
        ["provider", "outcome"],
        [(name, outcome, refreshed.get((name, outcome), 0)) for name in names for outcome in RefreshOutcome],
    )
    held = holds.held(reader)
    yield gauge(
        "socialpub_held",
        "1 while a network refuses the whole app",
        ["provider"],
        [(provider, int(provider in held)) for provider in names],
    )
