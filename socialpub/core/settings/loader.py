"""Loads the configuration once from the file and the environment, before anything starts.

The environment overrides the file. One error lists all mistakes and never contains the value of a secret.
"""

import ipaddress
import json
import os
import pwd
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, SecretStr, ValidationError, ValidationInfo

from socialpub.core import commands, units
from socialpub.core.commands import CONFIG_VARIABLE, KEY_VARIABLE, URL_VARIABLE
from socialpub.core.errors import OperatorError
from socialpub.core.settings import messages, schema
from socialpub.core.settings.messages import Key
from socialpub.core.settings.values import BaseUrl, Section, empty, is_secret, plain
from socialpub.core.validation import did_you_mean, format_mistakes, must_be, nearest

PREFIX = "SOCIALPUB_"
BACKUP_VARIABLE = "SOCIALPUB_BACKUP"
"""The backup's folder, for the command that runs after a backup. That command may call socialpub again."""
OTHER_VARIABLES = {CONFIG_VARIABLE, BACKUP_VARIABLE, URL_VARIABLE, KEY_VARIABLE}
"""Variables that are not settings."""
_OF_KUBERNETES = re.compile(
    r"SOCIALPUB(_[A-Z0-9]+)*_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9]+)*|PORT_[0-9]+_[A-Z_]+|PORT=.*://.*)"
)
"""The variables of a Service whose name begins with socialpub, as NAME=VALUE."""


def variable_name(key: Key) -> str:
    """Return a key's environment variable: `SOCIALPUB_PROVIDERS__X__CLIENT_ID`."""
    return PREFIX + "__".join(key).upper()


def _merge_environment(values: dict[str, Any], environ: Mapping[str, str]) -> tuple[list[str], dict[Key, str]]:
    """Put the variables into `values`. Return the mistakes, and the variable of each key that a variable sets."""
    by_variable = {variable_name(key): key for key in (*KEYS, *FILES)}
    mistakes: list[str] = []
    variables: dict[Key, str] = {}
    for name in sorted(environ):
        if not name.startswith(PREFIX) or name in OTHER_VARIABLES:
            continue
        key = by_variable.get(name)
        if key is None and any(map(_OF_KUBERNETES.fullmatch, (name, f"{name}={environ[name]}"))):
            continue
        if key is None:
            # With the prefix, all variables would look similar.
            near = nearest(name.removeprefix(PREFIX), [variable.removeprefix(PREFIX) for variable in by_variable])
            mistakes.append(f"the environment variable {name} {did_you_mean(near and PREFIX + near)}")
            continue
        section: Any = values
        for part in key[:-1]:
            section = section.setdefault(part, {})
            if not isinstance(section, dict):  # a value in place of a section, which validation reports
                break
        else:
            section[key[-1]] = _typed(environ[name], str if key in FILES else KEYS[key].annotation)
            variables[key] = name
    return mistakes, variables


def _typed(text: str, annotation: Any) -> Any:
    """Return a variable's text as a TOML value. A wrong text stays a text, and validation rejects the text."""
    text = text.strip()
    if annotation is bool or bool in get_args(annotation):
        return {"true": True, "false": False}.get(text.lower(), text)
    if annotation is int:
        return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else text
    if getattr(annotation, "__origin__", None) is tuple:
        parts = [part.strip() for part in text.split(",") if part.strip()]
        return _join_urls(parts) if is_secret(annotation) else parts
    return text


def _join_urls(parts: list[str]) -> list[str]:
    """Join the parts of each URL. A URL can contain commas, and only its first part contains `://`."""
    urls: list[str] = []
    for part in parts:
        if "://" in part or not urls:
            urls.append(part)
        else:
            urls[-1] += f",{part}"
    return urls


def _read_secret_files(values: dict[str, Any], folder: Path, credentials: str | None) -> list[str]:
    """Replace every `<key>_file` of `values` by the secret `<key>`. Return the mistakes.

    A relative name is a file in `credentials` (systemd's folder for credentials) or in `folder`.
    """
    mistakes = []
    folders = [Path(credentials), folder] if credentials else [folder]
    for key, target in FILES.items():
        section: Any = values
        for part in key[:-1]:
            section = section.get(part) if isinstance(section, dict) else None
        name = section.pop(key[-1], "") if isinstance(section, dict) else ""
        if not isinstance(name, str):
            mistakes.append(f"{'.'.join(key)} {must_be('the name of a file', name)}")
        if not isinstance(name, str) or not name.strip():
            continue
        if section.get(target[-1]):
            mistakes.append(f"{'.'.join(target)} and {'.'.join(key)} are both set; remove one of them")
            continue
        try:
            secret = _read_secret([place / name.strip() for place in folders])
            if KEYS[target].annotation is not SecretStr:
                lines = (line.strip() for line in secret.splitlines())
                section[target[-1]] = [line for line in lines if line and not line.startswith("#")]
            else:
                section[target[-1]] = secret
        except ValueError as error:
            mistakes.append(f"{'.'.join(key)} = {name!r}: {error}")
    return mistakes


def _read_secret(candidates: Iterable[Path]) -> str:
    """Return the trimmed text of the first file that exists. Raise `ValueError`."""
    files = list(dict.fromkeys(candidates))
    for file in files:
        try:
            secret = file.read_text("utf-8").strip()
        except FileNotFoundError:
            continue
        except UnicodeDecodeError:
            raise ValueError(f"{file} is not UTF-8 text") from None
        except OSError as error:
            raise ValueError(f"{file} cannot be read ({error.strerror})") from None
        if not secret:
            raise ValueError(f"{file} is empty; write the secret to this file")
        return secret
    raise ValueError(f"{' and '.join(str(file) for file in files)} {'does' if len(files) == 1 else 'do'} not exist")


MAX_NAMED_WAIT = timedelta(hours=24)
"""The longest wait in the rules of the networks: the rate limits of TikTok and X per day."""


class SettingsError(OperatorError):
    """The configuration is not valid. The message lists every mistake."""


def _join_listen(value: Any) -> Any:
    return (
        ", ".join(value)
        if isinstance(value, list | tuple) and all(isinstance(address, str) for address in value)
        else value
    )


def _check_listen(value: str) -> str:
    addresses = [address.strip() for address in value.split(",")]
    for address in addresses:
        match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})", address)
        if match is None or not 1 <= int(match[3]) <= 65535:
            raise ValueError("must be a host and a port")
        if match[1]:
            ipaddress.IPv6Address(match[1])
    if (overlap := find_overlap(addresses)) is not None:
        raise ValueError(f"{overlap}; remove one of the two")
    return ", ".join(addresses)


def find_overlap(addresses: Iterable[str]) -> str | None:
    """Return a sentence about two addresses (`HOST:PORT`) that cannot both be listened on."""
    for address, other in combinations(addresses, 2):
        (host, port), (other_host, other_port) = _split_address(address), _split_address(other)
        if int(port) != int(other_port):
            continue
        if host == other_host:
            return f"{other} is given twice"
        for wide, narrow, place, inside in ((host, other_host, address, other), (other_host, host, other, address)):
            if wide == "::" or (wide == "0.0.0.0" and re.fullmatch(r"[0-9.]+", narrow)):  # noqa: S104  # no bind
                return f"{place} also listens at {inside}"
    return None


def _split_address(address: str) -> tuple[str, str]:
    host, _, port = address.rpartition(":")
    host = host.strip("[]").lower()
    return (str(ipaddress.IPv6Address(host)) if ":" in host else host), port


def _read_folder(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str):
        if not value.strip() or "\0" in value or value.startswith("~"):
            raise ValueError("must be a path without ~")
        value = Path(value)
    if isinstance(value, Path):
        return Path((info.context or {}).get("folder", Path.cwd())) / value
    return value


class Settings(Section):
    """The whole configuration. `Settings()` is the configuration of an empty file in the current folder."""

    base_url: BaseUrl = Field(
        default="http://127.0.0.1:8000", description="an http(s) URL without a query; a path is allowed"
    )
    listen: Annotated[str, BeforeValidator(_join_listen), AfterValidator(_check_listen)] = Field(
        default="127.0.0.1:8000",
        description='"HOST:PORT" or a list of them, with a port from 1 to 65535, IPv6 in brackets, 0.0.0.0 for every '
        "IPv4 interface, [::] for every interface",
    )
    """The addresses, separated by commas."""
    data_dir: Annotated[Path, BeforeValidator(_read_folder)] = Field(
        default=Path("data"), description="an absolute folder, or a folder relative to the configuration file"
    )
    providers: schema.ProvidersSection = Field(default_factory=empty)
    publishing: schema.PublishingSection = Field(default_factory=empty)
    uploads: schema.UploadsSection = Field(default_factory=empty)
    media: schema.MediaSection = Field(default_factory=empty)
    storage: schema.StorageSection = Field(default_factory=empty)
    retention: schema.RetentionSection = Field(default_factory=empty)
    rate_limit: schema.RateLimitSection = Field(default_factory=empty)
    proxies: schema.ProxiesSection = Field(default_factory=empty)
    dashboard: schema.DashboardSection = Field(default_factory=empty)
    mcp: schema.McpSection = Field(default_factory=empty)
    notify: schema.NotifySection = Field(default_factory=empty)
    metrics: schema.MetricsSection = Field(default_factory=empty)
    health: schema.HealthSection = Field(default_factory=empty)
    logging: schema.LoggingSection = Field(default_factory=empty)
    backup: schema.BackupSection = Field(default_factory=empty)

    _file: Path | None = PrivateAttr(default=None)

    @property
    def config_file(self) -> Path | None:
        """The loaded file. None: the settings were built in code."""
        return self._file

    @property
    def listen_addresses(self) -> list[tuple[str, int]]:
        """The host and the port of each address of `listen`."""
        pairs = (address.rpartition(":") for address in self.listen.split(", "))
        return [(host.strip("[]"), int(port)) for host, _, port in pairs]

    @property
    def listen_ports(self) -> list[int]:
        return [port for _, port in self.listen_addresses]

    @property
    def secret_key_file(self) -> Path:
        return self.data_dir / "secret.key"

    @property
    def database_file(self) -> Path:
        return self.data_dir / "socialpub.db"

    @property
    def queue_file(self) -> Path:
        """The file of the wake-up queue. Disposable."""
        return self.data_dir / "queue.db"

    @property
    def media_dir(self) -> Path:
        return self.data_dir / "media"

    @property
    def avatars_dir(self) -> Path:
        """Images of connected accounts. Disposable."""
        return self.data_dir / "avatars"

    @property
    def backup_dir(self) -> Path:
        """The folder of scheduled backups."""
        return self.data_dir / self.backup.folder

    @property
    def run_dir(self) -> Path:
        """Lock files and sockets of the running processes."""
        return self.data_dir / "run"

    def callback_url(self, network: str) -> str:
        """Return the appliance's URL to which a network's consent page redirects the browser by default."""
        return f"{self.base_url}/oauth/{network}/callback"

    def redirect_url(self, network: str) -> str:
        """Return the URL to which the network redirects the browser: the URL that is registered with the app."""
        return getattr(self.providers, network).redirect_url or self.callback_url(network)

    def secret_values(self) -> list[str]:
        """Return every configured secret that is not empty."""
        secrets: list[str] = []
        for key, value in self._plain_values():
            if is_secret(KEYS[key].annotation):
                secrets += value if isinstance(value, list) else [value]
        return list(filter(None, secrets))

    def fingerprints(self, sign: Callable[..., str]) -> dict[str, str]:
        """Return a fingerprint of each value by its key.

        `sign` is `Secrets.sign`, so fingerprints do not reveal values.
        """
        return {
            ".".join(key): sign("configuration", ".".join(key), json.dumps(value, default=str))[:FINGERPRINT_LENGTH]
            for key, value in self._plain_values()
            # Processes with another data_dir do not share anything.
            if key != ("data_dir",)
        }

    def _plain_values(self) -> Iterator[tuple[Key, Any]]:
        for key in KEYS:
            value: Any = self
            for name in key:
                value = getattr(value, name)
            yield key, plain(value)

    def advice(self) -> list[str]:
        """Return sentences about values that are valid but probably a mistake."""
        sentences = []
        if self.publishing.give_up_after < MAX_NAMED_WAIT:
            sentences.append(
                f"publishing.give_up_after is {units.duration(self.publishing.give_up_after)}, but a network can "
                f"require a wait of {units.duration(MAX_NAMED_WAIT)}. Such a delivery fails at once. "
                'To let such deliveries wait, set publishing.give_up_after to "24h" or more.'
            )
        return sentences

    def half_credentials(self) -> list[str]:
        """Return a sentence for each network with only one of two credentials."""
        halves = ((name, section.half_given()) for name, section in self.providers)
        return [
            f"providers.{name}.{half[0]} is set but {half[1]} is empty. Copy the {half[1]} from the app's page."
            for name, half in halves
            if half is not None
        ]


KEYS = messages.list_keys(Settings)
"""Every key as a path (`("providers", "x", "client_id")`) with its field."""
FILES = {(*key[:-1], f"{key[-1]}_file"): key for key, field in KEYS.items() if is_secret(field.annotation)}
"""The names under which a secret is read from a file: `client_secret_file` for `client_secret`."""
FINGERPRINT_LENGTH = 16
"""Enough characters to detect a change."""


def changed_keys(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the keys with different fingerprints, without keys that only another version knows."""
    return [key for key, fingerprint in now.items() if before.get(key, fingerprint) != fingerprint]


def load(path: Path | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """Load the configuration. Raise `SettingsError`.

    The file is `path`, `$SOCIALPUB_CONFIG` or the first of `USUAL_FILES`, in this order.
    """
    file, text = _read_file(path, environ)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        mistake, remedy = messages.explain_toml(text, error)
        raise SettingsError(f"{file} {mistake}.", remedy) from None
    mistakes, variables = _merge_environment(values, environ)
    mistakes += _read_secret_files(values, file.parent, environ.get("CREDENTIALS_DIRECTORY"))
    try:
        settings = Settings.model_validate(values, context={"folder": file.parent})
    except ValidationError as error:
        mistakes += [messages.explain(detail, KEYS, variables) for detail in error.errors(include_url=False)]
    if mistakes:
        raise SettingsError(
            format_mistakes(f"The configuration {file} has", mistakes),
            f"Fix the mistakes and start again. `{commands.line('config', '--example')}` explains every key.",
        )
    settings._file = file
    return settings


def environment_without_settings() -> dict[str, str]:
    """Return the environment for another program: without our settings, which may contain secrets."""
    environ = os.environ.items()
    return {name: value for name, value in environ if name == CONFIG_VARIABLE or not name.startswith(PREFIX)}


def named_file(path: Path | None = None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the file from the option or the variable, which may not exist. None: use `commands.USUAL_FILES`."""
    return path or (Path(environ[commands.CONFIG_VARIABLE]) if environ.get(commands.CONFIG_VARIABLE) else None)


def _read_file(path: Path | None, environ: Mapping[str, str]) -> tuple[Path, str]:
    named = named_file(path, environ)
    candidates = [named] if named else list(commands.USUAL_FILES)
    for file in candidates:
        try:
            return file.absolute(), file.read_text("utf-8-sig")
        except FileNotFoundError:
            continue
        except UnicodeDecodeError:
            raise SettingsError(f"{file} is not UTF-8 text.", "Save the file as UTF-8.") from None
        except OSError as error:
            hint = _permission_hint(file) if isinstance(error, PermissionError) else "Use the name of a readable file."
            raise SettingsError(f"{file} cannot be read: {error.strerror}.", hint) from None
    places = " or ".join(str(file) for file in candidates)
    raise SettingsError(
        f"There is no configuration file at {places}.", f"Run `{commands.line('init')}` to create a configuration."
    )


def _permission_hint(file: Path) -> str:
    if not commands.is_service():
        return "Run the command as the user of socialpub, or let this user read the file."
    if pwd.getpwnam(commands.USER).pw_uid != os.geteuid():
        return f"Run `{commands.this_line_as(commands.USER, file)}`."
    # The file is only readable if its folder is readable.
    places = str(file.parent), str(file)
    give, allow = (commands.system_line(*words, *places) for words in (("chgrp", commands.USER), ("chmod", "g+rX")))
    return f"Run `{give}` and `{allow}`."
