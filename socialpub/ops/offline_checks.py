"""What the configuration and the files alone tell, before anything is opened: the doctor's first round.

It makes nothing, not even a database: whoever is told that something is missing may want to restore a copy there.
"""

import os
import pwd
import sqlite3
import tomllib
from collections.abc import Iterator
from contextlib import closing
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from socialpub.core import crypto
from socialpub.core.errors import OperatorError
from socialpub.core.settings.loader import Settings
from socialpub.db import appliance_state, migrate
from socialpub.db.database import Reader
from socialpub.media import inspect
from socialpub.ops.finding import Finding, note, ok, problem


def look_at(settings: Settings) -> Iterator[Finding]:
    """Every finding of the first round. Where one of them is a problem with `data_dir`, `secret.key` or `database`,
    nothing can be opened."""
    yield from _look_at_configuration(settings)
    yield from _look_at_permissions(settings)
    yield from _look_at_secret(settings)
    yield _look_at_libmagic()
    yield _look_at_base_url(settings)
    yield from _look_at_database(settings)


def _look_at_configuration(settings: Settings) -> Iterator[Finding]:
    file = settings.config_file
    yield ok("configuration", f"{file or 'The configuration'} is read and complete.")
    for sentence in settings.notes():
        yield note("configuration", sentence)
    if file is not None and file.stat().st_mode & 0o007 and _holds_a_secret(tomllib.loads(file.read_text("utf-8-sig"))):
        yield problem("permissions", f"{file} holds a secret, and every user can read it.", f"chmod 600 {file}")


def _holds_a_secret(values: dict[str, Any]) -> bool:
    sections = [*values.get("providers", {}).values(), values.get("metrics", {})]
    return any(section.get("client_secret") or section.get("token") for section in sections)


def _look_at_permissions(settings: Settings) -> Iterator[Finding]:
    data_dir = settings.data_dir
    if not data_dir.is_dir():
        remedy = f"mkdir -m 700 {data_dir}, and put secret.key there; or bring a copy back: socialpub restore FILE"
        yield problem("data_dir", f"{data_dir} does not exist.", remedy)
        return
    found = list(_look_at_owners(settings))
    if not found and data_dir.stat().st_mode & 0o077:
        found = [note("permissions", f"Other users can look into {data_dir}.", f"chmod 700 {data_dir}")]
    yield from found or [ok("data_dir", f"{data_dir} can be written, and by nobody else.")]


def _look_at_owners(settings: Settings) -> Iterator[Finding]:
    data_dir, database = settings.data_dir, settings.database_file
    journals = [database.with_name(f"{database.name}-{end}") for end in ("wal", "shm")]
    media = settings.media_dir
    owner = data_dir.stat().st_uid
    for path in (data_dir, database, *journals, settings.queue_file, media, media / "incoming", settings.run_dir):
        if not path.exists():
            continue
        needed = os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)
        if not os.access(path, needed):
            yield problem("data_dir", f"{path} cannot be written.", f"Run as the user who owns {data_dir}.")
        elif path.stat().st_uid != owner:
            # A command that was run as root leaves such a file, and the service cannot write it any more.
            names = _name_of(path.stat().st_uid), _name_of(owner)
            message = f"{path} belongs to {names[0]}, and {data_dir} to {names[1]}."
            yield problem("data_dir", message, f"chown -R {names[1]} {data_dir}")


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _look_at_secret(settings: Settings) -> Iterator[Finding]:
    path = settings.secret_key_file
    try:
        crypto.load(path)
    except OperatorError as error:
        yield problem("secret.key", error.message, error.hint or "Put the original secret.key there.")
        return
    if path.stat().st_mode & 0o077:
        yield problem("permissions", f"Other users can read {path}.", f"chmod 600 {path}")
    else:
        yield ok("secret.key", f"{path} is there, and nobody else can read it.")


def _look_at_libmagic() -> Finding:
    try:
        name = inspect.detect_type(Path(__file__))
    except Exception as error:
        return problem("libmagic", f"File types cannot be recognised: {error}.", "Install again with: make setup")
    return ok("libmagic", f"Works (it calls its own source {name}).")


def _look_at_base_url(settings: Settings) -> Finding:
    parts = urlsplit(settings.base_url)
    if _is_loopback(parts.hostname or ""):
        return note(
            "base_url",
            f"{settings.base_url} is reached from this machine only.",
            "Enough to try things; set the public address when callers or networks elsewhere must reach it.",
        )
    if parts.scheme != "https":
        return problem(
            "base_url",
            f"{settings.base_url} is not https: keys and signed addresses travel in the open.",
            "Put a reverse proxy with TLS in front and set base_url to its address.",
        )
    return ok("base_url", f"{settings.base_url} is https.")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _look_at_database(settings: Settings) -> Iterator[Finding]:
    path = settings.database_file
    if not path.exists():
        yield note(
            "database", f"There is none at {path} yet.", "The first `socialpub serve` or `admin` command makes it."
        )
        return
    patience = settings.database.busy_timeout.total_seconds()
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True, timeout=patience)) as database:
            database.execute("PRAGMA query_only = 1")
            sound = database.execute("PRAGMA quick_check(1)").fetchone()[0]
            applied = [row[0] for row in database.execute("SELECT name FROM schema_migration")]
            bound = appliance_state.get(Reader(database), appliance_state.SECRET_KEY)
    except sqlite3.Error as error:
        yield _unreadable(path, error)
        return
    if sound != "ok":
        yield _damaged(path, sound)
    elif unknown := migrate.unknown(applied):
        message = f"{path} was made by a newer socialpub (it has {', '.join(unknown)}, unknown here)."
        yield problem("database", message, "Install the newer version again, or restore a copy that this one made.")
    elif bound is not None and _is_foreign(settings, bound):
        message = f"{path} belongs to another secret.key than the one beside it."
        yield problem("secret.key", message, "Put back the one that lay there; no stored token can be read without it.")
    elif missing := migrate.missing(applied):
        message = f"{path} is of an older socialpub; the next start brings it up to date ({', '.join(missing)})."
        yield note("database", message, "Take a copy first: socialpub backup FILE")


def _is_foreign(settings: Settings, bound: str) -> bool:
    try:
        return crypto.load(settings.secret_key_file).check_value != bound
    except OperatorError:
        return False  # told already


def _unreadable(path: Path, error: sqlite3.Error) -> Finding:
    if "locked" in str(error) or "busy" in str(error):
        message = f"Another program keeps {path} locked."
        return problem("database", message, "Find out which one (fuser shows it) and end it, or what it does there.")
    return _damaged(path, str(error))


def _damaged(path: Path, how: str) -> Finding:
    return problem(
        "database", f"{path} is damaged: {how}.", "Stop socialpub, move data_dir away and restore a copy of it."
    )
