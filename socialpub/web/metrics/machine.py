"""Metrics of this installation: whether it works, its room, its copies, its processes."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from socialpub.core import version
from socialpub.core.clock import parse
from socialpub.db import clock_jumps
from socialpub.db.transaction import Reader
from socialpub.ops import health, process_figures, storage_use, worker_report
from socialpub.ops.copies import last_copy
from socialpub.ops.finding import FindingCode
from socialpub.runtime import Runtime
from socialpub.web.metrics.shapes import counter, gauge, one


def families(rt: Runtime, reader: Reader) -> Iterator[Metric]:
    yield gauge("socialpub_build_info", "Which version answers", ["version"], [(version.current(), 1)])
    yield from _health(rt, reader)
    yield from _storage(rt)
    yield from _copies(reader)
    yield from _processes(reader)


def _health(rt: Runtime, reader: Reader) -> Iterator[Metric]:
    reasons = {finding.code for finding in health.look_without_writing(rt).reasons}
    yield gauge(
        "socialpub_unready",
        "1 for each reason why the appliance does not work, by the code that /readyz shows",
        ["code"],
        [(code, int(code in reasons)) for code in FindingCode],
    )
    age = health.heartbeat_age(reader, rt.now())
    if age is not None:
        yield one("socialpub_worker_heartbeat_age_seconds", "Since the worker last showed itself", age)
    jump = clock_jumps.recent(reader, rt.now())
    if jump is not None and jump.jumped_at is not None:
        yield one(
            "socialpub_clock_set_timestamp_seconds",
            "When it was noticed that somebody set this machine's clock; for a day",
            parse(jump.jumped_at).timestamp(),
        )


def _storage(rt: Runtime) -> Iterator[Metric]:
    try:
        use = storage_use.read(rt)
    except OSError:  # the media folder is gone, which `socialpub_unready` tells
        return
    yield one("socialpub_disk_free_bytes", "Room where media is stored", use.free_bytes)
    yield one("socialpub_disk_floor_bytes", "Below this much room nothing is accepted", use.floor_bytes)
    yield one("socialpub_media_files", "Files of uploads", use.media_files)
    yield one("socialpub_media_bytes", "Size of the uploads' files", use.media_bytes)
    yield one("socialpub_renditions_bytes", "Size of what was made from uploads, and pictures", use.renditions_bytes)
    if use.quota_bytes is not None:
        yield one("socialpub_media_quota_bytes", "How large media may become (storage.quota)", use.quota_bytes)
    database = rt.settings.database_file
    yield one("socialpub_database_bytes", "Size of the database file", storage_use.size_of(database))
    yield one(
        "socialpub_database_wal_bytes",
        "Size of the database's journal of writes (WAL)",
        storage_use.size_of(database.with_name(database.name + "-wal")),
    )


def _copies(reader: Reader) -> Iterator[Metric]:
    copy = last_copy.read(reader)
    if copy.made_at is not None:
        made_at = parse(copy.made_at).timestamp()
        yield one("socialpub_last_copy_timestamp_seconds", "The instant of the last backup", made_at)
    if copy.scheduled is not None:
        yield one("socialpub_scheduled_copy_bytes", "Size of the last scheduled backup", copy.scheduled.size_bytes)
        yield one(
            "socialpub_scheduled_copy_new_bytes",
            "What it adds to the room that data and earlier backups take",
            copy.scheduled.new_bytes,
        )
    failed_at = 0.0 if copy.failed_at is None else parse(copy.failed_at).timestamp()
    yield one(
        "socialpub_last_copy_failure_timestamp_seconds",
        "When a backup failed, if none was made since; else 0",
        failed_at,
    )


def _processes(reader: Reader) -> Iterator[Metric]:
    """The worker's are those of its last heartbeat."""
    running = {"web": process_figures.read()}
    report = worker_report.read(reader)
    if report is not None:
        running["worker"] = report.figures
    for name, meaning, field in (
        ("resident_memory_bytes", "Memory in use, with what is shared", "memory_bytes"),
        ("threads", "Threads", "threads"),
        ("open_fds", "Open file descriptors", "open_files"),
        ("max_fds", "File descriptors that may be open", "most_files"),
    ):
        rows = [(process, getattr(figures, field)) for process, figures in running.items()]
        yield gauge(f"socialpub_process_{name}", f"{meaning}, of each process", ["process"], rows)
    yield counter(
        "socialpub_process_cpu_seconds",
        "Processor time, of each process",
        ["process"],
        [(process, figures.cpu_seconds) for process, figures in running.items()],
    )
