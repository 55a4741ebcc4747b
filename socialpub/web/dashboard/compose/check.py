"""What is wrong with a post in its form: every problem at the field that it is about."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from socialpub.accounts.api_keys import OWNER
from socialpub.core.errors import FieldError, InvalidRequest, end_sentence
from socialpub.core.validation import Path
from socialpub.db.connection import Reader
from socialpub.providers.base import Content, Problem
from socialpub.providers.registry import LABELS
from socialpub.providers.tiktok import options as tiktok_options
from socialpub.providers.tiktok import sharing_guidelines
from socialpub.publishing.posts import content, validation
from socialpub.publishing.posts.drafts import Draft
from socialpub.publishing.posts.validation import CheckedDelivery
from socialpub.runtime import Runtime
from socialpub.web.api import drafts
from socialpub.web.api.requests import PostDraft
from socialpub.web.dashboard.browser import times
from socialpub.web.dashboard.compose import form as compose_form
from socialpub.web.dashboard.compose import media, option_fields
from socialpub.web.dashboard.compose.context import FormContext
from socialpub.web.dashboard.compose.form import AT, ComposeForm
from socialpub.web.dashboard.posts.submissions import PostVersion

TEXT_FIELD, PROFILES_FIELD, MEDIA_FIELD = "field-body", "profiles", "field-media"
WHEN_FIELD, TIME_FIELD, ZONE_FIELD = "when", "field-time", "field-zone"
"""Ids of the form's elements."""


@dataclass(frozen=True, slots=True)
class FormProblem:
    """`anchor` is the id of the field, `label` what it is called, `message` a sentence without its subject or with."""

    anchor: str
    label: str
    message: str

    @property
    def sentence(self) -> str:
        return end_sentence(self.message[:1].upper() + self.message[1:])


def locate(
    errors: Iterable[FieldError | Problem], form: ComposeForm, names: Mapping[str, str], profile: str | None = None
) -> list[FormProblem]:
    """Each where it belongs, once. `names` are the labels of profiles, by id; `profile` whose network says so."""
    found = []
    for error in errors:
        anchor, label = _locate_one(tuple(error.path), form, names)
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


def _locate_one(path: Path, form: ComposeForm, names: Mapping[str, str]) -> tuple[str, str]:
    match path:
        case ("post", "body", *_):
            return TEXT_FIELD, "Text"
        case ("post", "scheduledAt", *_):
            return TIME_FIELD, "Time"
        case ("when",):
            return WHEN_FIELD, "When"
        case ("zone",):
            return ZONE_FIELD, "Zone"
        case ("profiles", int(at), *_) if at < len(form.profiles):
            profile_id = form.profiles[at]
            return f"profile-{profile_id}", names.get(profile_id, "Profile")
        case ("profiles", *_):
            return PROFILES_FIELD, "Profiles"
        case ("media", int(at), *rest) if at < len(form.media):
            artifact_id = form.media[at].artifact_id
            return (f"alt-{artifact_id}" if rest == ["alt"] else f"media-{artifact_id}"), f"Media {at + 1}"
        case ("media", *_):
            return MEDIA_FIELD, "Media"
        case ("providerOptions", str(network), str(key), *_) if network in LABELS:
            return f"options-{network}-{key}", f"{LABELS[network]}, {option_fields.OPTION_LABELS.get(key, key)}"
        case ("providerOptions", str(network), *_) if network in LABELS:
            return f"options-{network}", LABELS[network]
        case _:
            return "compose", "Post"


def _message(error: FieldError | Problem) -> str:
    """In the words of the form: an option's own name is that of the API."""
    if error.path[:1] != ("providerOptions",) or not error.path[2:]:
        return error.message
    key = str(error.path[2])
    if isinstance(error, Problem) and error.is_missing and key in option_fields.MISSING_TEXTS:
        return option_fields.MISSING_TEXTS[key]
    return option_fields.complaint(key, error.message)


# MERGED from web/dashboard/compose_page.py: The page of Compose: the form with everything that stands around its f


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """A field of the post in words: as the post has it by now, and as the form has it."""

    label: str
    present: str
    ours: str
    is_ours: bool
    """Whether the form changes it."""


@dataclass(frozen=True, slots=True)
class Messages:
    """What was found out about a form."""

    problems: Sequence[FormProblem] = ()
    notes: Sequence[tuple[str, Sequence[str]]] = ()
    """Profile and what is worth knowing there."""
    fine: Sequence[str] = ()
    """The profiles whose network takes it as it is."""
    may_publish_anyway: bool = False
    message: str = ""
    """What went wrong."""
    post_id: str = ""
    """The post that it is about."""
    notice: str = ""
    """What the form is, where nothing went wrong."""
    compared: Sequence[ComparedValue] = ()
    """The fields of two versions of the post, between which the owner chooses."""
    version: PostVersion | None = None
    """The version that the post has by now, where the owner chooses."""
    ended: bool = False
    """Whether the post that the form was made from can no longer be edited."""


# MERGED from web/dashboard/compose_check.py: A form of Compose judged: by the shapes and rows that judge a request

MAX_NAMES = 3
STOPPED = ("providerOptions", "tiktok")
NOT_NOW = "a time is filled in, but “Now” is chosen: choose “At a time”, or empty the field “Time”"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """`is_bad`: something stands in the form that could not be accepted whatever the networks say."""

    said: Messages
    is_bad: bool
    draft: Draft | None = None

    def may_be_done(self, *, anyway: bool) -> bool:
        """Whether the post may be accepted; `anyway` also where some of its networks refuse it."""
        return not self.is_bad and (not self.said.problems or (anyway and self.said.may_publish_anyway))


async def check(
    rt: Runtime,
    form: ComposeForm,
    around: FormContext,
    refused_files: Sequence[str],
    *,
    content: bool = True,
    editing: str | None = None,
) -> CheckResult:
    """Everything that is wrong with it, and what is worth knowing. Without `content` only its files count. `editing`
    is the post that the form changes."""
    files = [FormProblem(MEDIA_FIELD, "Media", text) for text in refused_files]
    if not content:
        return CheckResult(Messages(files), bool(files))
    networks = {row.provider for row in around.connected if row.id in form.profiles}
    body = form.request_body(networks, only_photos=media.only_photos(rt, form))
    shape, mistakes = PostDraft.read(body)
    errors = [*_in_words(form, mistakes.errors), *_time(form)]
    if form.profiles:
        errors += drafts.check_rows(rt, OWNER, body, mistakes.errors)
    own = locate(_reworded(errors), form, around.names)
    if shape is None or errors:
        return CheckResult(Messages([*files, *own, *_guidelines(form, around, None)]), True)
    draft = drafts.to_draft(shape)
    checked, post = await rt.read_aside(lambda reader: _ask_networks(rt, reader, draft, editing))
    guidelines = _guidelines(form, around, post)
    refusals = _problems(form, around, checked, known={(one.anchor) for one in guidelines})
    said = Messages(
        [*files, *guidelines, *refusals],
        notes=_notes(around, checked),
        fine=[around.names[one.profile_id] for one in checked if not one.problems] if not guidelines else (),
        may_publish_anyway=not files and not guidelines and any(not one.problems for one in checked) and bool(refusals),
    )
    return CheckResult(said, bool(files or guidelines), draft)


def refused(error: InvalidRequest, form: ComposeForm, around: FormContext) -> CheckResult:
    """What the write refused: something changed since the check."""
    return CheckResult(Messages(locate(_reworded(error.errors), form, around.names)), True)


def _ask_networks(
    rt: Runtime, reader: Reader, draft: Draft, editing: str | None
) -> tuple[list[CheckedDelivery], Content]:
    # Weighing a text and opening files can take a while: not on the event loop.
    checked = validation.validate(rt, reader, draft, OWNER, editing)
    return checked, content.draft_content(rt, reader, draft, [])


def _problems(
    form: ComposeForm, around: FormContext, checked: Sequence[CheckedDelivery], known: set[str]
) -> list[FormProblem]:
    names: dict[Problem, list[str]] = {}
    for one in checked:
        for problem in one.problems:
            names.setdefault(problem, []).append(around.names[one.profile_id])
    found = []
    for problem, concerned in names.items():
        found += locate([problem], form, around.names, _listed(concerned) if len(checked) > 1 else None)
    return [problem for problem in found if problem.anchor not in known]


def _notes(around: FormContext, checked: Sequence[CheckedDelivery]) -> list[tuple[str, Sequence[str]]]:
    """What is worth knowing, once for all profiles that it is the same for."""
    names: dict[tuple[str, ...], list[str]] = {}
    for one in checked:
        if one.notes:
            names.setdefault(tuple(one.notes), []).append(around.names[one.profile_id])
    return [(_listed(concerned), notes) for notes, concerned in names.items()]


def _listed(names: Sequence[str]) -> str:
    """A hundred profiles are not named one by one."""
    return ", ".join(dict.fromkeys(names)) if len(names) <= MAX_NAMES else f"{names[0]} and {len(names) - 1} others"


def _guidelines(form: ComposeForm, around: FormContext, post: Content | None) -> list[FormProblem]:
    """What keeps a post from TikTok whatever the other networks say: nothing goes there without explicit choices."""
    creators = [around.creators[one] for one in form.profiles if one in around.creators]
    if not creators:
        return []
    chosen = form.options.get("tiktok", {})
    problems = sharing_guidelines.choices_missing(chosen, form.disclosed)
    for creator in creators:
        account = f"“{creator.name}”"
        if creator.stop:
            problems.append(Problem(STOPPED, f"Posting to {account} is stopped. {creator.stop} Or leave it out."))
        elif creator.unknown and not tiktok_options.is_draft(chosen):
            problems.append(Problem(STOPPED, f"Nothing can be posted to {account} now. {creator.unknown}"))
        elif not creator.unknown:
            problems += sharing_guidelines.not_offered(chosen, creator.levels, account)
        if post is not None:
            problems += sharing_guidelines.too_long(post, creator.longest_seconds, account)
    return locate(problems, form, around.names)


def _time(form: ComposeForm) -> list[FieldError]:
    if form.when != AT:
        return [FieldError(("when",), NOT_NOW)] if form.time and not compose_form.is_old_time(form) else []
    found = []
    local = form.local_time
    if not times.is_zone(form.zone):
        found.append(FieldError(("zone",), "choose one of the list"))
    elif local is not None and form.scheduled_at is None:
        found.append(FieldError(("post", "scheduledAt"), local.complaint))
    if local is None:
        found.append(FieldError(("post", "scheduledAt"), "choose a date and a time"))
    return found


def _in_words(form: ComposeForm, errors: Sequence[FieldError]) -> list[FieldError]:
    if form.profiles:
        return list(errors)
    return [FieldError(("profiles",), "choose at least one"), *(one for one in errors if one.path[:1] != ("profiles",))]


_WORDS = {
    "is required when there is no media": "write something, or add a picture or a video",
    "must be in the future; leave it out to publish now": "must be in the future; or choose “Now”",
    "must be in the future; null publishes immediately": "must be in the future; or choose “Now”",
    "is not the id of a profile; take ids from GET /profiles": "is not here any more; choose another one",
    "is not the id of an artifact; reserve and complete an upload first": "is not here any more; remove it and add the "
    "file again",
    "is disconnected; connect the account again and use its new id": "is disconnected; connect it again under Profiles",
}
"""What the API says in words of its own requests, in those of the form."""


def _reworded(errors: Sequence[FieldError]) -> list[FieldError]:
    return [FieldError(error.path, _WORDS.get(error.message, error.message)) for error in errors]
