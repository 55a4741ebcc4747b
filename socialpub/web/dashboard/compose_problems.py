"""What is wrong with a post in its form: every problem at the field that it is about."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from socialpub.core.errors import FieldError, closed
from socialpub.core.validation import Path
from socialpub.providers.content import Problem
from socialpub.providers.registry import LABELS
from socialpub.web.dashboard import option_words
from socialpub.web.dashboard.compose_form import ComposeForm

TEXT, PROFILES, MEDIA = "field-body", "profiles", "field-media"
WHEN, TIME, ZONE = "when", "field-time", "field-zone"
"""Ids of the form's elements."""


@dataclass(frozen=True, slots=True)
class FormProblem:
    """`anchor` is the id of the field, `label` what it is called, `message` a sentence without its subject or with."""

    anchor: str
    label: str
    message: str

    @property
    def sentence(self) -> str:
        return closed(self.message[:1].upper() + self.message[1:])


def located(
    errors: Iterable[FieldError | Problem], form: ComposeForm, names: Mapping[str, str], profile: str | None = None
) -> list[FormProblem]:
    """Each where it belongs, once. `names` are the labels of profiles, by id; `profile` whose network says so."""
    found = []
    for error in errors:
        anchor, label = _place(tuple(error.path), form, names)
        if profile is not None:
            label = f"{profile}: {label}"
        found.append(FormProblem(anchor, label, _message(error)))
    return list(dict.fromkeys(found))


def by_field(problems: Iterable[FormProblem]) -> dict[str, str]:
    """What is said at each field, by its id."""
    found: dict[str, list[str]] = {}
    for problem in problems:
        said = found.setdefault(problem.anchor, [])
        if problem.sentence not in said:
            said.append(problem.sentence)
    return {anchor: " ".join(said) for anchor, said in found.items()}


def option_errors(network: str, said: Mapping[str, str]) -> dict[str, str]:
    """Those at the options of this network, by key."""
    start = f"options-{network}-"
    return {anchor.removeprefix(start): text for anchor, text in said.items() if anchor.startswith(start)}


def _place(path: Path, form: ComposeForm, names: Mapping[str, str]) -> tuple[str, str]:
    match path:
        case ("post", "body", *_):
            return TEXT, "Text"
        case ("post", "scheduledAt", *_):
            return TIME, "Time"
        case ("when",):
            return WHEN, "When"
        case ("zone",):
            return ZONE, "Zone"
        case ("profiles", int(at), *_) if at < len(form.profiles):
            profile_id = form.profiles[at]
            return f"profile-{profile_id}", names.get(profile_id, "Profile")
        case ("profiles", *_):
            return PROFILES, "Profiles"
        case ("media", int(at), *rest) if at < len(form.media):
            artifact_id = form.media[at].artifact_id
            return (f"alt-{artifact_id}" if rest == ["alt"] else f"media-{artifact_id}"), f"Media {at + 1}"
        case ("media", *_):
            return MEDIA, "Media"
        case ("providerOptions", str(network), str(key), *_) if network in LABELS:
            return f"options-{network}-{key}", f"{LABELS[network]}, {option_words.LABELS.get(key, key)}"
        case ("providerOptions", str(network), *_) if network in LABELS:
            return f"options-{network}", LABELS[network]
        case _:
            return "compose", "Post"


def _message(error: FieldError | Problem) -> str:
    """In the words of the form: an option's own name is that of the API."""
    if error.path[:1] != ("providerOptions",) or not error.path[2:]:
        return error.message
    key = str(error.path[2])
    if isinstance(error, Problem) and error.is_missing and key in option_words.NEEDED:
        return option_words.NEEDED[key]
    return option_words.complaint(key, error.message)
