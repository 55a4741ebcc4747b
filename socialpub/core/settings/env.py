"""Where values come from besides the file: the environment, and files that hold one secret each.

Both only fill in the tree that the file gave; whether a value is good is decided afterwards, once, for all of them.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from socialpub.core.commands import CONFIG_VARIABLE
from socialpub.core.settings.messages import Key
from socialpub.core.settings.values import is_secret
from socialpub.core.spelling import nearest, unknown

PREFIX = "SOCIALPUB_"
COPY_VARIABLE = "SOCIALPUB_COPY"
"""Tells the command that follows a copy where that lies; the command may call socialpub again."""


def variable(key: Key) -> str:
    """The environment variable of a key: `SOCIALPUB_BASE_URL`, `SOCIALPUB_PROVIDERS__X__CLIENT_ID`."""
    return PREFIX + "__".join(key).upper()


def merge_environment(
    values: dict[str, Any], environ: Mapping[str, str], keys: Mapping[Key, FieldInfo]
) -> tuple[list[str], dict[Key, str]]:
    """Put the variables into `values`. Returns the mistakes, and for each key that was set so its variable."""
    by_variable = {variable(key): key for key in keys}
    mistakes: list[str] = []
    variables: dict[Key, str] = {}
    for name in sorted(environ):
        if not name.startswith(PREFIX) or name in (CONFIG_VARIABLE, COPY_VARIABLE):
            continue
        key = by_variable.get(name)
        if key is None:
            # Without the prefix, which would make every two variables look alike.
            near = nearest(name.removeprefix(PREFIX), [one.removeprefix(PREFIX) for one in by_variable])
            mistakes.append(f"the environment variable {name} {unknown(near and PREFIX + near)}")
            continue
        section: Any = values
        for part in key[:-1]:
            section = section.setdefault(part, {})
            if not isinstance(section, dict):  # the file has a value where a section belongs; reported by the check
                break
        else:
            section[key[-1]] = _typed(environ[name], keys[key].annotation)
            variables[key] = name
    return mistakes, variables


def _typed(text: str, annotation: Any) -> Any:
    """The text of a variable as TOML would have given it; what does not fit stays text and is refused as such."""
    text = text.strip()
    if annotation is bool or bool in get_args(annotation):
        return {"true": True, "false": False}.get(text.lower(), text)
    if annotation is int:
        return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else text
    if getattr(annotation, "__origin__", None) is tuple:
        parts = [part.strip() for part in text.split(",") if part.strip()]
        return _whole_addresses(parts) if is_secret(annotation) else parts
    return text


def _whole_addresses(parts: list[str]) -> list[str]:
    """Addresses hold commas of their own, such as several receivers: one begins where there is `://`."""
    found: list[str] = []
    for part in parts:
        if "://" in part or not found:
            found.append(part)
        else:
            found[-1] += f",{part}"
    return found


def read_secret_files(
    values: dict[str, Any], folder: Path, credentials: str | None, keys: Mapping[Key, FieldInfo]
) -> list[str]:
    """Fill in every `<key>` of `values` whose `<key>_file` is set. Returns the mistakes.

    A relative name is looked for in `credentials` (systemd's folder for them), then in `folder`.
    """
    mistakes = []
    folders = [Path(credentials), folder] if credentials else [folder]
    for key in keys:
        target = (*key[:-1], key[-1].removesuffix("_file"))
        section: Any = values
        for part in key[:-1]:
            section = section.get(part) if isinstance(section, dict) else None
        name = section.get(key[-1]) if isinstance(section, dict) else None
        if target == key or target not in keys or not isinstance(name, str) or not name.strip():
            continue
        if section.get(target[-1]):
            mistakes.append(f"{'.'.join(target)} and {'.'.join(key)} are both set: keep one of them")
            continue
        try:
            secret = _read_secret([place / name.strip() for place in folders])
            is_list = keys[target].annotation is not SecretStr
            section[target[-1]] = _lines(secret) if is_list else secret
        except ValueError as error:
            mistakes.append(f"{'.'.join(key)} = {name!r}: {error}")
    return mistakes


def _lines(text: str) -> list[str]:
    """Those that are neither empty nor a comment."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _read_secret(candidates: Iterable[Path]) -> str:
    """The trimmed text of the first candidate that exists. Raises `ValueError` that says where it looked."""
    looked = list(dict.fromkeys(candidates))
    for file in looked:
        try:
            secret = file.read_text("utf-8").strip()
        except FileNotFoundError:
            continue
        except UnicodeDecodeError:
            raise ValueError(f"{file} is not UTF-8 text") from None
        except OSError as error:
            raise ValueError(f"{file} cannot be read ({error.strerror})") from None
        if not secret:
            raise ValueError(f"{file} is empty; put the secret into it")
        return secret
    raise ValueError(f"there is no {' and no '.join(str(file) for file in looked)}")
