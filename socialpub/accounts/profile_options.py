"""Options stored for a profile: what every post to it says, unless the post says otherwise (contract section 6).

They are read by the network's own reader when they are stored, so that a misspelt key is refused here and not at the
next delivery.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from socialpub.accounts import profiles
from socialpub.core.errors import FieldError, InvalidRequest
from socialpub.db import profile_rows, trail
from socialpub.db.models import Profile
from socialpub.db.trail import TrailAction
from socialpub.db.transaction import Tx
from socialpub.providers import options as option_tables
from socialpub.providers.content import Options, Problem
from socialpub.providers.protocol import Provider
from socialpub.runtime import Runtime


def read_pairs(pairs: Sequence[str]) -> dict[str, str]:
    """`KEY=VALUE` texts as a mapping. Raises InvalidRequest for one without `=`, without a key, or given twice."""
    given: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        key = key.strip()
        if not equals or not key:
            raise InvalidRequest.at(
                pair or "An empty text", message="is no KEY=VALUE; KEY= with nothing behind it removes KEY"
            )
        if key in given:
            raise InvalidRequest.at(key, message="is given twice")
        given[key] = value.strip()
    return given


def set_options(rt: Runtime, tx: Tx, profile_id: str, given: Mapping[str, str]) -> Options:
    """Store these options beside those that are there; an empty value removes one. The options that are stored then.

    A value is read as JSON where that fits the option and as plain text where not. Raises NotFound, or InvalidRequest
    with every wrong key.
    """
    profile = profiles.get(tx, profile_id)
    provider = rt.providers[profile.provider]
    stored: Options = profile.options
    problems: list[Problem] = []
    for key, text in given.items():
        value, wrong = _read(provider, key, text)
        problems += wrong
        stored = provider.merge_options(stored, {key: value})
    if problems:
        raise _refused(problems)
    return _store(rt, tx, profile, stored, given)


def replace_options(rt: Runtime, tx: Tx, profile_id: str, given: Mapping[str, Any]) -> Options:
    """Store these options, and none of those that were there. The options that are stored then. Raises as
    `set_options`."""
    profile = profiles.get(tx, profile_id)
    changed = [key for key in {**profile.options, **given} if profile.options.get(key) != given.get(key)]
    return _store(rt, tx, profile, given, changed)


def check(rt: Runtime, profile: Profile, wanted: Mapping[str, Any]) -> Options:
    """Return these options under their canonical names. Raises InvalidRequest with every wrong key."""
    options, problems = rt.providers[profile.provider].read_options(wanted)
    if problems:
        raise _refused(problems)
    if option_tables.is_too_large(options):
        raise InvalidRequest.at("providerOptions", profile.provider, message=option_tables.TOO_LARGE)
    return options


def _store(rt: Runtime, tx: Tx, profile: Profile, wanted: Mapping[str, Any], changed: Collection[str]) -> Options:
    options = check(rt, profile, wanted)
    if changed:
        profile_rows.update(tx, profile.id, options=json.dumps(options, ensure_ascii=False), updated_at=tx.stamp)
        action, name = TrailAction.PROFILE_OPTIONS_SET, profile.name
        trail.record(tx, action, profile.id, name, provider=profile.provider, options=sorted(changed))
    return options


def _refused(problems: Sequence[Problem]) -> InvalidRequest:
    return InvalidRequest(
        " ".join(problem.message for problem in problems),
        [FieldError(problem.path, problem.message) for problem in problems],
    )


def _read(provider: Provider, key: str, text: str) -> tuple[Any, list[Problem]]:
    """The value meant by `text`, None for "take it away", and what is wrong with it."""
    value = _value(text)
    _, problems = provider.read_options({key: value})
    if problems and value is not None and not isinstance(value, str):
        # An id made of digits and a title that says "2026" are texts, although they look like numbers.
        _, problems_of_text = provider.read_options({key: text})
        if not problems_of_text:
            return text, []
    return value, problems


def _value(text: str) -> Any:
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text
