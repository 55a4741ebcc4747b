"""Check a form of Compose with the rules of the API, of the networks, and of TikTok's guidelines.

Each problem appears at its field.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from socialpub.accounts import api_keys
from socialpub.accounts.api_keys import OWNER
from socialpub.core.clock import stamp
from socialpub.core.errors import FieldCode, FieldError, InvalidRequest
from socialpub.core.validation import Path
from socialpub.db.connection import Database
from socialpub.db.tables import post_rows
from socialpub.providers.base import Content
from socialpub.providers.registry import LABELS
from socialpub.providers.tiktok import creator as creator_tiktok
from socialpub.providers.tiktok import options as tiktok_options
from socialpub.publishing.posts.drafts import CheckedDelivery, Draft, check_draft, draft_content
from socialpub.runtime import Runtime
from socialpub.web.api import post_requests
from socialpub.web.api.post_requests import PostDraft
from socialpub.web.dashboard.browser import times
from socialpub.web.dashboard.compose import media, option_fields
from socialpub.web.dashboard.compose.form import AT, ComposeForm
from socialpub.web.dashboard.compose.form_page import FormContext, FormProblem, Messages

MEDIA_FIELD = "field-media"
STOPPED = ("providerOptions", "tiktok")
NOT_NOW = "a time is set, but “Now” is chosen. Choose “At a time” or clear the field “Time”"
MAX_NAMES = 3

_WORDS = {
    FieldCode.TEXT_MISSING: "write a text, or add an image or a video",
    FieldCode.TIME_PAST: "must be in the future. Or choose “Now”",
    FieldCode.PROFILE_UNKNOWN: "no longer exists. Choose another profile",
    FieldCode.PROFILE_DISCONNECTED: "is disconnected. Connect it again under Profiles",
    FieldCode.ARTIFACT_UNKNOWN: "is no longer available. Remove it and add the file again",
}
"""The messages that differ from the API."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """`is_bad`: the form itself is not valid, apart from the rules of the networks."""

    messages: Messages
    is_bad: bool
    draft: Draft | None = None

    def is_acceptable(self, *, anyway: bool) -> bool:
        """Return whether the post can be accepted. `anyway` allows refusals by some networks."""
        return not self.is_bad and (not self.messages.problems or (anyway and self.messages.may_publish_anyway))


async def check_form(
    rt: Runtime,
    form: ComposeForm,
    context: FormContext,
    refused_files: Sequence[str] = (),
    *,
    editing: str | None = None,
) -> CheckResult:
    """Return all problems and notes. `editing` is the id of the edited post."""
    files = check_files(refused_files).messages.problems
    networks = context.chosen_networks(form.draft.profiles)
    body = form.request_body(networks, only_photos=media.only_photos(rt, form))
    shape, mistakes = PostDraft.for_networks(api_keys.list_extensions(rt)).read(body)
    errors = [*mistakes.errors, *_check_time(rt, form, editing)]
    if form.draft.profiles:
        errors += post_requests.check_rows(rt, OWNER, body, mistakes.errors)
    else:
        errors = [error for error in errors if error.path[:1] != ("profiles",)]
        errors.insert(0, FieldError(("profiles",), "choose at least one"))
    if shape is None or errors:
        own = _locate(errors, form, context)
        return CheckResult(Messages([*files, *own, *_check_guidelines(form, context, None)]), True)
    draft = shape.to_draft()

    def ask_networks(db: Database) -> tuple[list[CheckedDelivery], Content]:
        checked = check_draft(rt, db, draft, OWNER, editing)
        return checked, draft_content(rt, db, draft, [])

    # In a thread, because measuring texts and opening files takes time.
    checked, post = await rt.read_in_thread(ask_networks)
    guidelines = _check_guidelines(form, context, post)
    refusals = _locate_refusals(form, context, checked, known={guideline.anchor for guideline in guidelines})
    without_problems = [context.names[delivery.profile_id] for delivery in checked if not delivery.problems]
    messages = Messages(
        [*files, *guidelines, *refusals],
        notes=_list_notes(context, checked),
        without_problems=() if guidelines else without_problems,
        may_publish_anyway=bool(without_problems and refusals) and not files and not guidelines,
    )
    return CheckResult(messages, bool(files or guidelines), draft)


def check_files(refused: Sequence[str]) -> CheckResult:
    problems = [FormProblem(MEDIA_FIELD, "Media", text) for text in refused]
    return CheckResult(Messages(problems), bool(problems))


def refused(error: InvalidRequest, form: ComposeForm, context: FormContext) -> CheckResult:
    """Return the problems that the write found, because data changed after the check."""
    return CheckResult(Messages(_locate(error.errors, form, context)), True)


def _check_time(rt: Runtime, form: ComposeForm, editing: str | None) -> list[FieldError]:
    if form.when != AT:
        edited = post_rows.find(rt.db, editing) if editing else None
        named = stamp(form.named_instant) if form.named_instant else None
        is_old = edited is not None and edited.scheduled_at == named
        return [FieldError(("when",), NOT_NOW)] if form.time and not is_old else []
    problems = []
    local = form.local_time
    if not times.is_zone(form.zone):
        problems.append(FieldError(("zone",), "choose a zone from the list"))
    elif local is not None and form.scheduled_at is None:
        problems.append(FieldError(("post", "scheduledAt"), local.problem))
    if local is None:
        problems.append(FieldError(("post", "scheduledAt"), "choose a date and a time"))
    return problems


def _check_guidelines(form: ComposeForm, context: FormContext, post: Content | None) -> list[FormProblem]:
    """Check TikTok's guidelines, which require explicit choices by the owner."""
    creators = [context.creators[profile_id] for profile_id in form.draft.profiles if profile_id in context.creators]
    if not creators:
        return []
    chosen = form.options.get("tiktok", {})
    problems = creator_tiktok.list_missing_choices(chosen, form.disclosed)
    for creator in creators:
        account = f"“{creator.name}”"
        if creator.stop:
            problems.append(
                FieldError(STOPPED, f"Posting to {account} is not possible now. {creator.stop} Or remove this profile.")
            )
        elif creator.unknown and not tiktok_options.is_draft(chosen):
            problems.append(FieldError(STOPPED, f"Posting to {account} is not possible now. {creator.unknown}"))
        elif not creator.unknown:
            problems += creator_tiktok.list_levels_not_offered(chosen, creator.levels, account)
        if post is not None:
            problems += creator_tiktok.list_too_long_videos(post, creator.longest_seconds, account)
    return _locate(problems, form, context)


def _locate_refusals(
    form: ComposeForm, context: FormContext, checked: Sequence[CheckedDelivery], known: set[str]
) -> list[FormProblem]:
    names: dict[FieldError, list[str]] = {}
    for delivery in checked:
        for problem in delivery.problems:
            names.setdefault(problem, []).append(context.names[delivery.profile_id])
    refusals = []
    for problem, concerned in names.items():
        refusals += _locate([problem], form, context, _list_names(concerned) if len(checked) > 1 else None)
    return [problem for problem in refusals if problem.anchor not in known]


def _list_notes(context: FormContext, checked: Sequence[CheckedDelivery]) -> list[tuple[str, Sequence[str]]]:
    names: dict[tuple[str, ...], list[str]] = {}
    for delivery in checked:
        if delivery.notes:
            names.setdefault(tuple(delivery.notes), []).append(context.names[delivery.profile_id])
    return [(_list_names(concerned), notes) for notes, concerned in names.items()]


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names)) if len(names) <= MAX_NAMES else f"{names[0]} and {len(names) - 1} others"


def _locate(
    errors: Iterable[FieldError], form: ComposeForm, context: FormContext, profile: str | None = None
) -> list[FormProblem]:
    """Return each problem once, at its field. `profile` is the name of the refusing profile."""
    problems = []
    for error in errors:
        anchor, label = _find_field(tuple(error.path), form, context.names)
        if profile is not None:
            label = f"{profile}: {label}"
        problems.append(FormProblem(anchor, label, _message_for(error)))
    return list(dict.fromkeys(problems))


def _find_field(path: Path, form: ComposeForm, names: Mapping[str, str]) -> tuple[str, str]:
    match path:
        case ("post", "body", *_):
            return "field-body", "Text"
        case ("post", "scheduledAt", *_):
            return "field-time", "Time"
        case ("when",):
            return "when", "When"
        case ("zone",):
            return "field-zone", "Zone"
        case ("profiles", int(at), *_) if at < len(form.draft.profiles):
            profile_id = form.draft.profiles[at]
            return f"profile-{profile_id}", names.get(profile_id, "Profile")
        case ("profiles", *_):
            return "profiles", "Profiles"
        case ("media", int(at), *rest) if at < len(form.draft.media):
            artifact_id = form.draft.media[at].artifact_id
            return (f"alt-{artifact_id}" if rest == ["alt"] else f"media-{artifact_id}"), f"Media {at + 1}"
        case ("media", *_):
            return MEDIA_FIELD, "Media"
        case ("providerOptions", str(network), str(key), *_) if network in LABELS:
            return f"options-{network}-{key}", f"{LABELS[network]}, {option_fields.OPTION_LABELS.get(key, key)}"
        case ("providerOptions", str(network), *_) if network in LABELS:
            return f"options-{network}", LABELS[network]
        case _:
            return "compose", "Post"


def _message_for(error: FieldError) -> str:
    """Return the message with the form's name of an option."""
    message = error.message
    if error.code in _WORDS:
        message = _WORDS[error.code]
    if error.path[:1] != ("providerOptions",) or not error.path[2:]:
        return message
    key = str(error.path[2])
    if error.code is FieldCode.OPTION_MISSING and key in option_fields.MISSING_TEXTS:
        return option_fields.MISSING_TEXTS[key]
    return option_fields.with_form_name(key, message)
