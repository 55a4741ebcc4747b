"""The mixed line: uploads, creates, lists and due posts at once."""

import threading
import time
from datetime import timedelta
from pathlib import Path

from tests.bench.figures import Figure
from tests.bench.load import finish, get, median_ms, post, start
from tests.bench.publishing import check_early, post_count, posts_at_network, schedule
from tests.bench.servers import MeasuredAppliance, Servers, wait_until
from tests.bench.turns import Turns
from tests.bench.uploading import put, reserve, write_video

UPLOAD_BYTES = 20_000_000
LIST_GROWTH = 10
LATE_SECONDS = 2


def measure(servers: Servers, appliance: MeasuredAppliance, turns: Turns, seconds: float, due: int) -> list[Figure]:
    """Measure lists alone, then beside uploads, creates and `due` scheduled posts at one instant."""
    video = write_video(servers.folder / "mixed.mp4", UPLOAD_BYTES)
    found: list[Figure] = turns.once(lambda: _measure(appliance, video, seconds, due))
    video.unlink()
    return found


def _measure(appliance: MeasuredAppliance, video: Path, seconds: float, due: int) -> list[Figure]:
    key = appliance.key()
    lists = [get(appliance.url, "/api/v1/posts", key)]
    idle = median_ms(appliance.url, lists[0], 200)
    before = post_count(appliance)
    due_at = appliance.rt.now() + timedelta(seconds=seconds / 2)
    due_monotonic = time.monotonic() + (due_at - appliance.rt.now()).total_seconds()
    appliance.rt.write(schedule, appliance.profiles, due, due_at)
    bodies = [
        post(appliance.url, "/api/v1/posts", key, {"post": {"body": "Mixed ########"}, "profiles": [profile]})
        for profile in appliance.profiles
    ]
    over, speeds = threading.Event(), list[float]()

    def upload() -> None:
        while not over.is_set():
            speeds.append(put(reserve(appliance, key, UPLOAD_BYTES), video))

    uploading = threading.Thread(target=upload)
    uploading.start()
    creating = start(appliance.url, bodies, seconds=seconds, connections=2)
    reading = start(appliance.url, lists, seconds=seconds, connections=1)
    created, read = finish(creating, 201), finish(reading)
    over.set()
    uploading.join()
    count = created["statuses"]["201"] + due
    wait_until(lambda: post_count(appliance) >= before + count, seconds=120, every=0.25)
    sent = [one for one in posts_at_network(appliance)[before:] if one["text"].startswith("Burst")]
    check_early(sent, due_monotonic)
    late = max(one["received_monotonic"] for one in sent) - due_monotonic
    growth = read["p99_ms"] / idle
    return [
        Figure(
            "list of 20 beside creates, uploads and deliveries, 99 %",
            *(read["p99_ms"], "ms", idle, "idle median", growth),
            most=LIST_GROWTH,
        ),
        Figure("  responses to these lists", read["per_second"], "/s"),
        Figure("  creates", created["per_second"], "/s"),
        Figure("  uploads", sum(speeds) / len(speeds), "MB/s"),
        Figure(f"  the last of {due} due posts starts after", late, "s", most=LATE_SECONDS),
    ]
