"""The arguments of `socialpub post` that need reading: accounts, times, options and files (contract 10.5.1, 10.5.3).

What the shell refuses by itself is wrong usage: every function raises click.UsageError.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from socialpub.core.references import Profile, UnknownReference, clearest_reference, find_profile

Options = dict[str, dict[str, Any]]

REPLY_OPTION = "replyToPostId"
"""The option of every network that can reply to a post of ours (contract 10.7)."""
MAX_KEY_CHARACTERS = 255


def find_profiles(references: Sequence[str], profiles: Sequence[Profile]) -> list[Profile]:
    """Return the accounts that the references name, each once."""
    try:
        by_id = {profile["id"]: profile for profile in (find_profile(reference, profiles) for reference in references)}
    except UnknownReference as unknown:
        raise click.UsageError(f"--to {unknown}") from None
    return list(by_id.values())


def refuse_without_replies(profiles: Sequence[Profile], option: str) -> None:
    """Refuse accounts of a network that cannot reply to a post of ours."""
    for profile in profiles:
        if not _has_option(profile["provider"], REPLY_OPTION):
            raise click.UsageError(
                f"{option}: {clearest_reference(profile)} cannot get replies to your own posts. Leave it out of --to."
            )


def check_once(key: str | None, longest_suffix: str = "") -> str | None:
    """Return the key of --once, which an empty variable of a script must not turn off."""
    if key is None:
        return None
    limit = MAX_KEY_CHARACTERS - len(longest_suffix)
    if not (0 < len(key) <= limit and key.isascii() and key.isprintable() and key == key.strip()):
        raise click.UsageError(
            f"--once needs a key of 1 to {limit} printable ASCII characters, without spaces around it."
        )
    return key


# --- the text --------------------------------------------------------------------------------------------------------


def read_text(text: str | None) -> str | None:
    """Return the text, or the whole of stdin for `-`."""
    return _decode(sys.stdin.buffer.read(), "stdin") if text == "-" else text


def read_thread(name: str) -> list[str]:
    """Return the parts of a thread: a line `---` is between two parts. `-` is stdin."""
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise click.UsageError(f"--thread {name}: {error.strerror}.") from None
    parts = [part.strip() for part in re.split(r"^---[ \t]*$", _decode(content, f"--thread {name}"), flags=re.M)]
    if empty := [number for number, part in enumerate(parts, 1) if not part]:
        raise click.UsageError(
            f"--thread {name}: part {empty[0]} of {len(parts)} is empty. Lines `---` separate the parts."
        )
    return parts


def _decode(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise click.UsageError(f"{name} is not UTF-8 text.") from None


# --- media -----------------------------------------------------------------------------------------------------------


def read_media(sources: Sequence[str], alts: Sequence[str]) -> tuple[list[dict[str, str]], dict[str, Path]]:
    """Return the media items of a post, and the file of each `fileField`."""
    if len(alts) > len(sources):
        raise click.UsageError(f"Each --alt needs its --media: {len(alts)} --alt, {len(sources)} --media.")
    items, files = [], {}
    for number, source in enumerate(sources):
        if source.lower().startswith(("http://", "https://")):
            item = {"url": source}
        else:
            name = f"file{number}"
            item, files[name] = {"fileField": name}, _check_file(source)
        items.append({**item, "alt": alts[number]} if number < len(alts) and alts[number] else item)
    return items, files


def _check_file(name: str) -> Path:
    path = Path(name)
    try:
        if path.is_file():
            return path
        reason = "this is not a file" if path.exists() else "this file does not exist"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "this is not the name of a file"
    raise click.UsageError(f"--media {name}: {reason}.")


# --- the time --------------------------------------------------------------------------------------------------------

_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?) ?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)
TIME_FORMS = "2026-12-24T18:00:00+01:00, or “2026-12-24 18:00” in the zone of this machine"


def read_time(text: str) -> datetime:
    """Return a time with its offset. A time without an offset is in the zone of this machine."""
    match = _TIME.fullmatch(text.strip())
    try:
        if match is None:
            raise ValueError
        day, time, offset = match.groups()
        local_time = datetime.fromisoformat(f"{day}T{time}{(offset or '').upper()}")
        if local_time.tzinfo is not None:
            return local_time
        first, second = (local_time.replace(fold=fold).astimezone() for fold in (0, 1))
    except (ValueError, OverflowError):
        raise click.UsageError(f"--at needs a time that exists: {TIME_FORMS}.") from None
    if first.utcoffset() == second.utcoffset():
        return first
    is_skipped = first.replace(tzinfo=None, fold=0) != local_time
    reason = "the clock skips this time" if is_skipped else "this time occurs twice"
    raise click.UsageError(
        f"--at {text}: {reason} in the zone of this machine. Give the offset: "
        f"{' or '.join(sorted({first.isoformat(), second.isoformat()}))}."
    )


# --- options ---------------------------------------------------------------------------------------------------------

_PAIR = re.compile(r"(?P<network>[a-z]+)\.(?P<key>\w+)=(?P<value>.*)", re.ASCII | re.DOTALL)


def read_options(pairs: Sequence[str]) -> Options:
    """Return the options by network. The network's table decides whether `true`, `7` and `[…]` are texts."""
    options: Options = {}
    for pair in pairs:
        match = _PAIR.fullmatch(pair)
        if match is None:
            raise click.UsageError(f"--option {pair} is not NETWORK.KEY=VALUE, such as x.replySettings=following.")
        network, key, value = match.group("network", "key", "value")
        if key in options.setdefault(network, {}):
            raise click.UsageError(f"--option {network}.{key} is given twice.")
        options[network][key] = _read_value(network, key, value)
    return options


def options_of_each_part(options: Options) -> Options:
    """Return the options without those of one post, such as the post that it answers."""
    options_of_replies = {
        network: {key: value for key, value in chosen.items() if not _is_of_one_post(network, key)}
        for network, chosen in options.items()
    }
    return {network: chosen for network, chosen in options_of_replies.items() if chosen}


def _tables() -> Mapping[str, Any]:
    # The tables load slowly, and most posts need none.
    from socialpub.providers import registry

    return registry.OPTIONS


def _read_value(network: str, key: str, text: str) -> Any:
    from socialpub.providers.options import read_value

    # A newer appliance may know more networks and options: it judges them.
    return read_value(_tables().get(network, ()), key, text)


def _has_option(network: str, name: str) -> bool:
    return any(name == option.name for option in _tables().get(network, ()))


def _is_of_one_post(network: str, key: str) -> bool:
    return any(key in option.spellings and option.of_one_post for option in _tables().get(network, ()))
