"""What one run of one step may know and use: the job that is handed to a network's adapter."""

import json
from datetime import timedelta
from typing import Any

from socialpub.core import signed_urls
from socialpub.core.clock import parse
from socialpub.core.settings.loader import Settings
from socialpub.db import clock_jumps, delivery_rows
from socialpub.db.models import Delivery, ProfileStatus, Progress, State
from socialpub.providers.content import Account, Content, ImageLimits, MediaFile
from socialpub.providers.job import CallTrace, Job, Withdrawn
from socialpub.providers.protocol import Provider
from socialpub.publishing import deliveries, network_time, read_back, renditions
from socialpub.runtime import Runtime

SLICE_SECONDS = 10.0
"""Bytes go in slices of about this long, so that a lane never keeps a worker for a whole film."""


class LookDue(Exception):
    """What came before a second call took so long that the account must be looked at again first."""


def build(
    rt: Runtime,
    delivery: Delivery,
    provider: Provider,
    account: Account,
    content: Content,
    token: str,
    trace: CallTrace,
) -> Job:
    began, asked = rt.clock.monotonic(), False
    moved = clock_jumps.moved(rt.reader, rt.clock)
    place = ("delivery", delivery.id, "memo")
    committed_at = delivery.progress.since or delivery.committed_at

    def gate() -> None:
        """Nothing is sent for a profile disconnected, or a post stopped, meanwhile."""
        row = delivery_rows.state_of(rt.reader, delivery.id)
        if row is None or row["profile_status"] == ProfileStatus.DISCONNECTED:
            raise Withdrawn("The profile was disconnected.")
        if (row["state"], row["held_by"]) != (State.RUNNING, rt.process.name):
            raise Withdrawn("The post was stopped.")
        if delivery.commits_next and not asked:  # announced, but the call has not left yet
            if Progress(**json.loads(row["progress"])).stopped:
                raise Withdrawn(deliveries.STOPPED)
            if read_back.is_look_due(rt, delivery):
                raise LookDue

    def call(method: str, url: str, **arguments: Any) -> Any:
        nonlocal asked
        try:
            answer = rt.http_of(delivery.provider).call(method, url, gate=gate, **arguments)
        finally:
            asked = True
        trace.answered = True
        if "token" in arguments:  # without one it is not the network's API that answers
            network_time.note_answer(rt, delivery.provider, answer)
        return answer

    def fit(media: MediaFile, limits: ImageLimits) -> MediaFile:
        return renditions.fitted(rt, delivery.id, media, limits)

    return Job(
        content=content,
        options=provider.read_options(delivery.options)[0],
        account=account,
        memo=dict(delivery.memo),
        token=token,
        call=call,
        fit=fit,
        now=rt.now() - moved,
        slice_over=lambda: rt.clock.monotonic() - began >= SLICE_SECONDS,
        committed_at=parse(committed_at) - moved if committed_at else None,
        since=lambda: network_time.since(rt, delivery),
        unknown_before=delivery.progress.commits > 0,
        public_url=lambda media: _public_url(rt, media),
        seal=lambda text: rt.secrets.seal(text, *place).decode(),
        open=lambda sealed: rt.secrets.open(sealed.encode(), *place),
        times_back=delivery.progress.again,
        trace=trace,
    )


def _public_url(rt: Runtime, media: MediaFile) -> str:
    lifetime = public_url_lifetime(rt.settings)
    return signed_urls.media_url(rt.settings, rt.secrets, renditions.key_of(rt, media), rt.now(), lifetime)


def public_url_lifetime(settings: Settings) -> timedelta:
    """Until a delivery is settled, whatever its network takes to fetch media."""
    return settings.publishing.give_up_after + timedelta(hours=2)
