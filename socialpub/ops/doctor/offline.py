"""The first checks of `doctor`: the configuration and the files, before the database is opened.

These checks create nothing: if files are missing, the owner may want to restore a backup.
"""

import platform
import sqlite3
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from socialpub.core import commands, version
from socialpub.core.errors import OperatorError
from socialpub.core.secrets import crypto
from socialpub.core.settings.loader import Settings
from socialpub.db import appliance_state, file_check, upgrade_backups
from socialpub.db import upgrade as upgrade_db
from socialpub.db.connection import open_file
from socialpub.db.secret_key import lost_key_hint, next_key_file
from socialpub.media.decoder import client, inspect
from socialpub.media.types import MediaRejected, media_kind
from socialpub.ops import file_faults
from socialpub.ops.doctor import reachability
from socialpub.ops.health import Finding, Level, note, ok, problem, problem_of
from socialpub.providers.registry import SPECIFIED


def check_upgrade_backups(settings: Settings) -> Iterator[Finding]:
    """Yield a finding about the newest backup of an upgrade, with the way back."""
    for backup in upgrade_backups.list_all(settings.database_file)[:1]:
        message = f"The database from before the last upgrade is in {backup.path}."
        restore = commands.line("restore", str(backup.path))
        yield ok(
            "upgrade",
            f"{message} To go back, run `{restore}`. Then remove the configuration keys that are newer than version "
            f"{backup.version}, and install that version.",
        )


def check(settings: Settings) -> Iterator[Finding]:
    """Yield the findings. After a problem in `checks.NEEDED_TO_OPEN`, the database cannot be opened."""
    yield ok(
        "version",
        f"This is socialpub {version.VERSION}, with Python {platform.python_version()}, SQLite "
        f"{sqlite3.sqlite_version}, Pillow {metadata.version('Pillow')} and PyAV {metadata.version('av')}.",
    )
    yield from _check_configuration(settings)
    yield from _check_credentials(settings)
    folder = _check_data_dir(settings)
    yield folder
    is_usable = folder.level is not Level.PROBLEM
    if is_usable:
        yield from _check_secret(settings)
    yield from _check_decoding()
    yield _check_base_url(settings)
    if is_usable:
        yield from _check_database(settings)


def _check_configuration(settings: Settings) -> Iterator[Finding]:
    file = settings.config_file
    yield ok("configuration", f"{file or 'The configuration'} does not contain mistakes.")
    for sentence in settings.advice():
        yield note(
            "configuration",
            sentence,
            f"If this is not intended, correct the configuration. {commands.restart()}.",
        )
    if file is not None and file.stat().st_mode & 0o007 and _holds_a_secret(tomllib.loads(file.read_text("utf-8-sig"))):
        message = f"{file} contains a secret, and every user can read it."
        yield problem("permissions", message, _run("chmod", "o-rwx", str(file)))


def _holds_a_secret(values: dict[str, Any]) -> bool:
    sections = [*values.get("providers", {}).values(), values.get("metrics", {}), values.get("notify", {})]
    return any(section.get(key) for section in sections for key in ("client_secret", "token", "urls"))


def _run(*words: str) -> str:
    return f"Run `{commands.system_line(*words)}`."


def _check_credentials(settings: Settings) -> Iterator[Finding]:
    halves = settings.half_credentials()
    for sentence in halves:
        message, _, remedy = sentence.partition(". ")
        yield problem("credentials", f"{message}: accounts cannot be connected.", remedy)
    if not halves and not any(section.is_set_up for _, section in settings.providers):
        yield problem(
            "credentials",
            "No network is configured: accounts cannot be connected.",
            f"Register an app with one of {', '.join(SPECIFIED)} and fill in its section of the configuration. "
            f"`{commands.line('config', '--example')}` shows every section. To try socialpub without an app, run "
            f"`{commands.line('sandbox')}`.",
        )


def _check_data_dir(settings: Settings) -> Finding:
    data_dir = settings.data_dir
    try:
        mode = data_dir.stat().st_mode
        fault = file_faults.find_owner_fault(settings)
    except FileNotFoundError:
        make, restore = file_faults.make_folder(data_dir), commands.line("restore", "FILE")
        remedy = f"Run `{make}` and put secret.key in that folder. Then restore a backup: `{restore}`"
        return problem("data_dir", f"{data_dir} does not exist.", remedy)
    except OSError as error:
        again = commands.this_line_as("root", settings.config_file)
        return problem("data_dir", f"{data_dir} cannot be reached: {error.strerror}.", f"Run `{again}`.")
    if fault is not None:
        return problem_of("data_dir", fault)
    if mode & 0o077:
        return note("permissions", f"Other users have access to {data_dir}.", _run("chmod", "700", str(data_dir)))
    return ok("data_dir", f"Only the owner of {data_dir} can write to this folder.")


def _check_secret(settings: Settings) -> Iterator[Finding]:
    path = settings.secret_key_file
    try:
        crypto.load(path)
    except OperatorError as error:
        yield problem_of("secret.key", error)
        return
    if path.stat().st_mode & 0o077:
        yield problem("permissions", f"Other users can read {path}.", _run("chmod", "600", str(path)))
    else:
        yield ok("secret.key", f"{path} exists, and other users cannot read it.")


def _check_decoding() -> Iterator[Finding]:
    try:
        yield ok("libmagic", f"libmagic {inspect.describe_libmagic()} recognizes file types.")
    except Exception as error:
        yield problem("libmagic", f"File types cannot be recognized: {error}.", "Install socialpub again completely.")
    for mime_type in ("image/jpeg", "video/mp4"):
        try:
            client.inspect_sample(mime_type)
        except (MediaRejected, client.DecoderFailed) as error:
            message = f"A valid {media_kind(mime_type)} cannot be decoded, so every upload like it fails. {error}"
            yield problem("decoding", message, "If the machine has free memory, install socialpub again completely.")
            return
    yield ok("decoding", "A small image and a small video can be decoded.")


def _check_base_url(settings: Settings) -> Finding:
    parts = urlsplit(settings.base_url)
    if reachability.is_loopback(settings.base_url):
        return note(
            "base_url",
            f"{settings.base_url} can be reached only from this machine.",
            "To make socialpub reachable for other callers and for networks, set base_url to the public URL.",
        )
    if parts.scheme != "https":
        return problem(
            "base_url",
            f"{settings.base_url} is not https: API keys and signed URLs are sent unencrypted.",
            "Set up a reverse proxy with TLS, and set base_url to the URL of the proxy.",
        )
    return ok("base_url", f"{settings.base_url} is https.")


def _check_database(settings: Settings) -> Iterator[Finding]:
    path = settings.database_file
    if not path.exists():
        yield note("database", f"{path} does not exist yet.", "The appliance creates it at its first start.")
        return
    try:
        with open_file(path, "rw") as database:
            database.execute_sql("PRAGMA query_only = 1")
            result = file_check.find_damage(database.connection(), "Checking the database")
            upgrade_db.refuse_unreadable(database, str(path))
            belongs_to = appliance_state.get(database, appliance_state.SECRET_KEY)
            missing = upgrade_db.list_missing(upgrade_db.list_applied(database))
            made_by = upgrade_backups.read_version(database)
            foreign = upgrade_db.find_foreign_object(database) if result == "ok" and not missing else None
    except OperatorError as error:
        yield problem_of("database", error)
        return
    except (sqlite3.Error, UnicodeDecodeError) as error:
        yield problem_of("database", file_faults.explain(error, f"{path} cannot be read: {error}.", settings))
        return
    if result != "ok":
        yield problem_of("database", file_faults.damaged_database(result, settings))
    elif belongs_to is not None and not _is_key(settings.secret_key_file, belongs_to):
        following = next_key_file(settings.secret_key_file)
        if following.exists() and _is_key(following, belongs_to):
            message = f"A change of secret.key was interrupted: {path} already belongs to {following.name}."
            yield note("secret.key", message, "No action is needed: the next start finishes the change.")
        else:
            message = f"{path} belongs to another secret.key than {settings.secret_key_file}."
            remedy = f"Put the original key back: stored tokens cannot be read without that key. {lost_key_hint()}"
            yield problem("secret.key", message, remedy)
    elif missing:
        message = f"{path} was made by an older version of socialpub, {made_by}. The next start updates the database"
        where = f"and keeps a copy of it in {upgrade_backups.backup_folder(path)} ({', '.join(missing)})."
        yield note("database", f"{message} {where}", "No action is needed. The update does not change media.")
    if foreign is not None:
        message = f"{path} differs from the schema of its version in {foreign!r}: `restore` refuses its backups."
        yield problem("backup", message, f"Undo the change to {foreign!r} with the `sqlite3` shell.")


def _is_key(key_file: Path, check_value: str) -> bool:
    """Return whether the key has this check value, or cannot be read."""
    try:
        return crypto.load(key_file).check_value == check_value
    except OperatorError:
        return True  # another finding reports a key that cannot be read
