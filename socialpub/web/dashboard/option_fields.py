"""The options of a network as fields of a form, and back: from the tables that the API validates with.

A field is named `options.<network>.<key>` (`options.tiktok.privacyLevel`); `fields` makes one for every key of a
network, by key. A template writes them with the macros of `_option_fields.html`: `field(one)`, `group(legend, all)`.

What the form brings is read by `read(form, network)`: what the API would take under `providerOptions.<network>`, with
booleans, numbers and lists where the text is one, else the text as it was typed, so that the table itself says what is
wrong with it and the field shows it again (`fields(network, read(…), errors=errors_of(…))`).

The last value of a name counts. A blank field is not given: in Compose the profile's stored option holds then, on a
profile's page there is none. So a truth value has three states: blank (not given), `true` and `false`. Where a form
wants a box to be ticked instead, a hidden field of the same name stands before it and says what the empty box means
(`disableComment`: hidden `true`, box `false`). A list sends a blank besides its ticked boxes, which counts for nothing.
A value that is locked is shown and sent as it is.

An artifact is chosen by its picture, or uploaded: a file field named `options.<network>.<key>.file` stands below, and
`with_uploads` puts the artifact that its file became into the options.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from socialpub.core.errors import FieldError
from socialpub.providers.options import Option, OptionType
from socialpub.providers.registry import OPTIONS
from socialpub.web.dashboard import option_words
from socialpub.web.dashboard.forms import Form

PREFIX = "options."
SECTION = "boardSectionId"
UPLOAD = ".file"
NO_PICTURE = "None"
ARTIFACTS = {
    option.name: network for network, table in OPTIONS.items() for option in table if option.type is OptionType.ARTIFACT
}
"""The options whose value is an artifact, and their network."""


@dataclass(frozen=True, slots=True)
class OptionChoice:
    value: str
    label: str


@dataclass(frozen=True, slots=True)
class NetworkChoices:
    """What a network says an account can choose from now, by key."""

    choices: Mapping[str, Sequence[OptionChoice]] = field(default_factory=dict)
    """Instead of the table's, or of a text."""
    locked: Mapping[str, str] = field(default_factory=dict)
    """Keys whose value the account does not leave open, and why."""
    account: str | None = None
    """Whose choices they are, as the network calls them."""
    longest_video_seconds: int | None = None
    stop: str | None = None
    """Why nothing can be posted to the account now."""
    unknown: str | None = None
    """Why the network did not say, and what to do."""


@dataclass(frozen=True, slots=True)
class OptionField:
    name: str
    key: str
    label: str
    control: str
    """`select`, `boxes`, `pictures`, `text`, `number` or `url`."""
    value: str
    ticked: tuple[str, ...]
    """The boxes that are, of `boxes`."""
    choices: tuple[OptionChoice, ...]
    hint: str
    error: str | None
    locked: str | None
    placeholder: str
    minimum: int | None = None
    maximum: int | None = None

    of_one_post: bool = False
    """Whether it is none for a profile's defaults."""

    @property
    def is_given(self) -> bool:
        return bool(self.value or self.ticked)

    @property
    def id(self) -> str:
        return self.name.replace(".", "-")

    def is_chosen(self, choice: OptionChoice) -> bool:
        """A section's value holds its board before a slash; what is stored is the section alone."""
        return choice.value == self.value or (self.key == SECTION and choice.value.endswith(f"/{self.value}"))


def fields(
    network: str,
    shown: Mapping[str, Any],
    *,
    stored: Mapping[str, Any] | None = None,
    blank: str = "Default",
    errors: Mapping[str, str] | None = None,
    known: NetworkChoices | None = None,
    defaults: Mapping[str, str] | None = None,
) -> dict[str, OptionField]:
    """Every option of this network by key; one that the network has closed only if it has a value.

    `shown` are the values in the fields (as stored, or as `read`). Where a field is blank, the value in `stored` holds,
    which the blank choice names after the word `blank`. Otherwise the default holds: the words in `defaults` by key,
    or the table's."""
    known = known or NetworkChoices()
    return {
        option.name: _field(
            network, option, shown.get(option.name), stored or {}, blank, errors or {}, known, defaults or {}
        )
        for option in OPTIONS[network]
        if not option.closed or shown.get(option.name)
    }


def read(form: Form, network: str) -> dict[str, Any]:
    """The options that the form gives for this network, without the blank ones."""
    found: dict[str, Any] = {}
    for option in OPTIONS[network]:
        texts = [text.strip() for text in form.texts(f"{PREFIX}{network}.{option.name}")]
        if option.type is OptionType.CHOICES:
            found[option.name] = [text for text in texts if text] or None
        elif texts:
            found[option.name] = _value(option, texts[-1])
    return _without_foreign_section({key: value for key, value in found.items() if value is not None})


def with_uploads(options: Mapping[str, Mapping[str, Any]], uploads: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The options with the artifacts that were uploaded for them, by the name of the file field."""
    found = {network: dict(given) for network, given in options.items()}
    for name, artifact_id in uploads.items():
        network, _, key = name.removeprefix(PREFIX).removesuffix(UPLOAD).partition(".")
        if ARTIFACTS.get(key) == network:
            found.setdefault(network, {})[key] = artifact_id
    return found


def untouched(shown: Mapping[str, OptionField]) -> list[tuple[str, str]]:
    """Return what a browser sends of these fields when they are untouched."""
    sent = []
    for one in shown.values():
        if one.control == "boxes":
            ticked = [choice.value for choice in one.choices if choice.value in one.ticked]
            sent += [(one.name, value) for value in ("", *ticked)]
        elif one.control == "select" and not one.locked:
            chosen = [choice.value for choice in one.choices if one.is_chosen(choice)]
            # Without a chosen one, a browser chooses the first; of several, the last.
            sent.append((one.name, chosen[-1] if chosen else one.choices[0].value))
        else:
            sent.append((one.name, one.value))
    return sent


def errors_of(network: str, errors: Sequence[FieldError]) -> dict[str, str]:
    """What is wrong with options of this network, by key; the words of the form instead of the API's."""
    found: dict[str, str] = {}
    for error in errors:
        if error.path[:2] == ("providerOptions", network) and len(error.path) > 2:
            key = str(error.path[2])
            found[key] = option_words.complaint(key, error.message)
    return found


def _value(option: Option, text: str) -> Any:
    if not text:
        return None
    if option.type is OptionType.BOOLEAN:
        return {"true": True, "false": False}.get(text, text)
    if option.type is OptionType.INTEGER:
        return int(text) if text.isascii() and text.removeprefix("-").isdigit() and len(text) < 20 else text
    return text


def _without_foreign_section(given: dict[str, Any]) -> dict[str, Any]:
    """A section chosen from a list comes as `board/section`; it counts on its own board only."""
    board, slash, section = str(given.get(SECTION, "")).partition("/")
    if not slash:
        return given
    rest = {key: value for key, value in given.items() if key != SECTION}
    return {**rest, SECTION: section} if board == given.get("boardId") else rest


def _field(
    network: str,
    option: Option,
    value: Any,
    stored: Mapping[str, Any],
    blank: str,
    errors: Mapping[str, str],
    known: NetworkChoices,
    defaults: Mapping[str, str],
) -> OptionField:
    holds = stored.get(option.name, option.default)
    offered = known.choices.get(option.name)
    control, choices = _control(option, offered, _text(value))
    if control == "select":
        source = blank if option.name in stored else "Default"
        held = defaults.get(option.name) if option.name not in stored else None
        held = held or (None if holds is None else _label(offered or (), holds) or _shown(option, holds))
        words = "Not set" if held is None else f"{source}: {held}"
        choices = (OptionChoice("", words), *choices)
    elif control == "pictures":
        choices = (OptionChoice("", NO_PICTURE), *choices)
    limited = option.type in (OptionType.TEXT, OptionType.LINK, OptionType.DIGITS, OptionType.INTEGER)
    return OptionField(
        name=f"{PREFIX}{network}.{option.name}",
        key=option.name,
        label=option_words.LABELS[option.name],
        control=control,
        value=_text(value),
        ticked=tuple(map(str, value)) if isinstance(value, list) else (),
        choices=tuple(choices),
        hint=option_words.hint(option, listed=option.name in known.choices),
        error=errors.get(option.name),
        locked=known.locked.get(option.name),
        placeholder="" if holds is None or control in ("select", "boxes", "pictures") else _shown(option, holds),
        minimum=option.minimum if option.type is OptionType.INTEGER else None,
        maximum=option.maximum if limited else None,
        of_one_post=option.of_one_post,
    )


def _control(
    option: Option, offered: Sequence[OptionChoice] | None, value: str
) -> tuple[str, tuple[OptionChoice, ...]]:
    """The kind of control, and what it offers: a value that is no longer offered stays to be seen."""
    match option.type:
        case OptionType.BOOLEAN:
            words = [(text, option_words.shown(option.name, text == "true").capitalize()) for text in ("true", "false")]
            allowed_first = option.name in option_words.DENIALS
            return "select", tuple(OptionChoice(*one) for one in (reversed(words) if allowed_first else words))
        case OptionType.ARTIFACT if offered is not None:
            is_there = not value or any(one.value == value for one in offered)
            return "pictures", (*offered, *(() if is_there else (OptionChoice(value, "A file that was removed"),)))
        case OptionType.CHOICES:
            return "boxes", tuple(OptionChoice(one, option_words.value(one)) for one in option.values)
        case OptionType.CHOICE if offered is None:
            return "select", tuple(OptionChoice(one, option_words.value(one)) for one in option.values)
        case OptionType.INTEGER:
            return "number", ()
        case OptionType.LINK:
            return "url", ()
    if offered is None:
        return "text", ()
    if value and not any(value in (one.value, one.value.rpartition("/")[2]) for one in offered):
        gone = OptionChoice(value, f"{option_words.value(value)} (not offered at the moment)")
        return "select", (*offered, gone)
    return "select", tuple(offered)


def _label(choices: Sequence[OptionChoice], value: Any) -> str | None:
    """What the network calls a stored value, such as a board."""
    return next((one.label for one in choices if _text(value) in (one.value, one.value.rpartition("/")[2])), None)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None or isinstance(value, list) else str(value)


def _shown(option: Option, value: Any) -> str:
    if isinstance(value, bool):
        return option_words.shown(option.name, value)
    return option_words.value(str(value)) if option.type is OptionType.CHOICE else str(value)
