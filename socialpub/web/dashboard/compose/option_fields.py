"""Convert the options of a network to form fields and back, with the option tables of the API.

A field has the name `options.<network>.<key>`. `build_fields` creates the fields of a network.
`read_options` returns the value of `providerOptions.<network>` in the API. Invalid text stays text, so that the option
table reports the error and the field shows the text again.

The last value of a name counts. A blank field means the profile's default, so a boolean has three states. A checkbox
therefore has a hidden field with the same name and the value of the empty box before it. Artifacts are chosen from a
list or uploaded with the field `options.<network>.<key>.file`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from socialpub.accounts.choices import NetworkChoices, OptionChoice, value_label
from socialpub.core.errors import FieldError
from socialpub.providers.options import Option, OptionType
from socialpub.providers.registry import OPTIONS
from socialpub.web.dashboard.browser.forms import Form

OPTION_LABELS = {
    "replySettings": "Who may reply",
    "madeWithAi": "Made with AI",
    "paidPartnership": "Paid partnership",
    "inReplyToPostId": "In reply to (post id on X)",
    "replyToPostId": "Reply to your post (id in socialpub)",
    "quotePostId": "Quote (post id)",
    "communityId": "Community (id)",
    "shareWithFollowers": "Share with followers",
    "mode": "How to post",
    "privacyLevel": "Who can see it",
    "title": "Title",
    "disableComment": "Comments",
    "disableDuet": "Duets",
    "disableStitch": "Stitches",
    "videoCoverTimestampMs": "Cover frame (milliseconds)",
    "photoCoverIndex": "Cover photo (first is 0)",
    "autoAddMusic": "Add music",
    "brandContentToggle": "Paid partnership (branded content)",
    "brandOrganicToggle": "Promotes your own brand",
    "isAigc": "Made by AI",
    "boardId": "Board",
    "boardSectionId": "Section",
    "link": "Link",
    "dominantColor": "Dominant color",
    "coverImageKeyFrameTime": "Cover frame (seconds)",
    "coverArtifactId": "Cover image",
    "aiDisclosures": "AI disclosure",
    "languages": "Languages of the text",
    "contentLabels": "Content warnings",
    "replyControl": "Who may reply",
    "linkCard": "Link card",
}

UNAUDITED = {"mode": "Send to the TikTok app in Compose, publish directly through the API"}
"""The defaults that differ while TikTok has not audited the app."""

ALLOWED, NOT_ALLOWED = "allowed", "not allowed"
DENIALS = frozenset({"disableComment", "disableDuet", "disableStitch"})
"""Options whose `true` forbids something. Pages name what is allowed, to avoid double negation."""

HINTS = {
    "boardId": "The board's id, a number. Reload this page to choose the board from a list.",
    "boardSectionId": "The id of a section of that board. Without a section, the pin is on the board itself.",
    "replySettings": "",
    "replyToPostId": "The id is on the page of that post. This post waits until that post is published.",
    "mode": "A post that is sent to the TikTok app waits in its inbox as a draft. You finish it there.",
    "privacyLevel": "Without a default, choose it for each post.",
    "disableComment": "",
    "disableDuet": "",
    "disableStitch": "",
    "brandContentToggle": "Not possible if only you can see the post.",
    "photoCoverIndex": "",
    "coverImageKeyFrameTime": "The video frame that becomes the cover. It excludes a cover image.",
    "coverArtifactId": "The cover of a video, instead of one of its frames.",
    "aiDisclosures": "",
    "languages": "Language tags, separated by commas, such as en, pt-BR. At most three.",
    "contentLabels": "",
    "replyControl": "",
}
"""The hints that differ from the option table."""

LISTED_HINTS = {
    "boardId": "",
    "boardSectionId": "The list shows the sections of the board that was chosen when the page was loaded.",
}
"""The hints of options with choices from the network."""

MISSING_TEXTS = {"boardId": "choose a board, here or in the profile's default options"}


def with_form_name(key: str, message: str) -> str:
    """Replace the API's name of an option in a message with the form's name."""
    return OPTION_LABELS.get(key, key) + message.removeprefix(key) if message.startswith(f"{key} ") else message


def value_text(key: str, given: Any) -> str:
    match given:
        case bool() if key in DENIALS:
            return NOT_ALLOWED if given else ALLOWED
        case bool():
            return "yes" if given else "no"
        case str():
            return value_label(given)
        case list():
            return ", ".join(value_text(key, item) for item in given)
        case _:
            return str(given)


def field_hint(option: Option, *, listed: bool = False) -> str:
    if listed and option.name in LISTED_HINTS:
        return LISTED_HINTS[option.name]
    return HINTS.get(option.name, option.meaning).replace("`", "")


PREFIX = "options."
SECTION = "boardSectionId"
UPLOAD = ".file"
NO_IMAGE = "None"
ARTIFACTS = {
    option.name: network for network, table in OPTIONS.items() for option in table if option.type is OptionType.ARTIFACT
}
"""The network of each option whose value is an artifact."""


@dataclass(frozen=True, slots=True)
class OptionField:
    name: str
    key: str
    label: str
    control: str
    """`select`, `boxes`, `images`, `text`, `number` or `url`."""
    value: str
    ticked: tuple[str, ...]
    choices: tuple[OptionChoice, ...]
    hint: str
    error: str | None
    locked: str | None
    placeholder: str
    minimum: int | None = None
    maximum: int | None = None
    of_one_post: bool = False
    """Whether a profile cannot have a default."""

    @property
    def is_given(self) -> bool:
        return bool(self.value or self.ticked)

    @property
    def id(self) -> str:
        return self.name.replace(".", "-")

    def is_chosen(self, choice: OptionChoice) -> bool:
        """Return whether the choice is selected. The choice of a section includes the board."""
        return choice.value == self.value or (self.key == SECTION and choice.value.endswith(f"/{self.value}"))


def build_fields(
    network: str,
    shown: Mapping[str, Any],
    *,
    stored: Mapping[str, Any] | None = None,
    blank: str = "Default",
    errors: Mapping[str, str] | None = None,
    known: NetworkChoices | None = None,
    defaults: Mapping[str, str] | None = None,
) -> dict[str, OptionField]:
    """Return the options of this network by key. A closed option appears only if it has a value.

    `shown` are the values in the fields. A blank field uses the value in `stored`, which the blank choice shows after
    the word `blank`. Otherwise the default applies: the text in `defaults`, or the default in the table.
    """
    known, stored, errors, defaults = known or NetworkChoices(), stored or {}, errors or {}, defaults or {}
    fields = {}
    for option in OPTIONS[network]:
        key, value = option.name, shown.get(option.name)
        if option.closed and not value:
            continue
        applies, offered = stored.get(key, option.default), known.choices.get(key)
        written = _shown(option, value) if option.type is OptionType.LANGUAGES and value else _text(value)
        control, choices = _control(option, offered, written)
        if control == "select":
            source = blank if key in stored else "Default"
            held = defaults.get(key) if key not in stored else None
            held = held or (None if applies is None else _label(offered or (), applies) or _shown(option, applies))
            choices = (OptionChoice("", "Not set" if held is None else f"{source}: {held}"), *choices)
        elif control == "images":
            choices = (OptionChoice("", NO_IMAGE), *choices)
        limited = option.type in (OptionType.TEXT, OptionType.LINK, OptionType.DIGITS, OptionType.INTEGER)
        chosen_from = control in ("select", "boxes", "images")
        fields[key] = OptionField(
            name=f"{PREFIX}{network}.{key}",
            key=key,
            label=OPTION_LABELS[key],
            control=control,
            value=written,
            ticked=tuple(map(str, value)) if isinstance(value, list) else (),
            choices=choices,
            hint=field_hint(option, listed=key in known.choices),
            error=errors.get(key),
            locked=known.locked.get(key),
            placeholder="" if applies is None or chosen_from else _shown(option, applies),
            minimum=option.minimum if option.type is OptionType.INTEGER else None,
            maximum=option.maximum if limited else None,
            of_one_post=option.of_one_post,
        )
    return fields


def read_options(form: Form, network: str) -> dict[str, Any]:
    """Return the options of the form, without blank options."""
    options: dict[str, Any] = {}
    for option in OPTIONS[network]:
        texts = [text.strip() for text in form.texts(f"{PREFIX}{network}.{option.name}")]
        if option.type is OptionType.CHOICES:
            options[option.name] = [text for text in texts if text] or None
        elif option.type is OptionType.LANGUAGES:
            options[option.name] = [item.strip() for item in "".join(texts[-1:]).split(",") if item.strip()] or None
        elif texts:
            options[option.name] = _value(option, texts[-1])
    return _without_foreign_section({key: value for key, value in options.items() if value is not None})


def with_uploads(options: Mapping[str, Mapping[str, Any]], uploads: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the options with the uploaded artifacts."""
    with_files = {network: dict(of_network) for network, of_network in options.items()}
    for name, artifact_id in uploads.items():
        network, _, key = name.removeprefix(PREFIX).removesuffix(UPLOAD).partition(".")
        if ARTIFACTS.get(key) == network:
            with_files.setdefault(network, {})[key] = artifact_id
    return with_files


def errors_of(network: str, errors: Sequence[FieldError]) -> dict[str, str]:
    """Return the messages about options of this network by key."""
    messages: dict[str, str] = {}
    for error in errors:
        if error.path[:2] == ("providerOptions", network) and len(error.path) > 2:
            key = str(error.path[2])
            messages[key] = with_form_name(key, error.message)
    return messages


def _value(option: Option, text: str) -> Any:
    if not text:
        return None
    if option.type is OptionType.BOOLEAN:
        return {"true": True, "false": False}.get(text, text)
    if option.type is OptionType.INTEGER:
        return int(text) if text.isascii() and text.removeprefix("-").isdigit() and len(text) < 20 else text
    return text


def _without_foreign_section(given: dict[str, Any]) -> dict[str, Any]:
    """Remove a section of another board. The list sends sections as `board/section`."""
    board, slash, section = str(given.get(SECTION, "")).partition("/")
    if not slash:
        return given
    rest = {key: value for key, value in given.items() if key != SECTION}
    return {**rest, SECTION: section} if board == given.get("boardId") else rest


def _control(
    option: Option, offered: Sequence[OptionChoice] | None, value: str
) -> tuple[str, tuple[OptionChoice, ...]]:
    """Return the kind of control and its choices. A value that is no longer offered stays visible."""
    match option.type:
        case OptionType.BOOLEAN:
            words = [(text, value_text(option.name, text == "true").capitalize()) for text in ("true", "false")]
            allowed_first = option.name in DENIALS
            return "select", tuple(OptionChoice(*word) for word in (reversed(words) if allowed_first else words))
        case OptionType.ARTIFACT if offered is not None:
            is_there = not value or any(word.value == value for word in offered)
            return "images", (*offered, *(() if is_there else (OptionChoice(value, "Removed file"),)))
        case OptionType.CHOICES:
            return "boxes", tuple(OptionChoice(word, value_label(word)) for word in option.values)
        case OptionType.CHOICE if offered is None:
            return "select", tuple(OptionChoice(word, value_label(word)) for word in option.values)
        case OptionType.INTEGER:
            return "number", ()
        case OptionType.LINK:
            return "url", ()
    if offered is None:
        return "text", ()
    if value and not any(value in (word.value, word.value.rpartition("/")[2]) for word in offered):
        gone = OptionChoice(value, f"{value_label(value)} (not available now)")
        return "select", (*offered, gone)
    return "select", tuple(offered)


def _label(choices: Sequence[OptionChoice], value: Any) -> str | None:
    return next(
        (choice.label for choice in choices if _text(value) in (choice.value, choice.value.rpartition("/")[2])), None
    )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None or isinstance(value, list) else str(value)


def _shown(option: Option, value: Any) -> str:
    if isinstance(value, bool):
        return value_text(option.name, value)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value_label(str(value)) if option.type is OptionType.CHOICE else str(value)
