"""A form of Compose judged: by the shapes and rows that judge a request to the API, by the networks, and by what TikTok
wants of a form."""

from collections.abc import Sequence
from dataclasses import dataclass

from socialpub.accounts.api_keys import OWNER
from socialpub.core.errors import FieldError, InvalidRequest
from socialpub.db.transaction import Reader
from socialpub.providers.content import Content, Problem
from socialpub.providers.tiktok import options as tiktok_options
from socialpub.providers.tiktok import sharing_guidelines
from socialpub.publishing import draft_validation, post_content
from socialpub.publishing.draft_validation import CheckedDelivery
from socialpub.publishing.drafts import Draft
from socialpub.runtime import Runtime
from socialpub.web.api import mapping
from socialpub.web.api.requests import PostDraft
from socialpub.web.dashboard import compose_changes, compose_media, compose_problems, times
from socialpub.web.dashboard.compose_form import AT, ComposeForm
from socialpub.web.dashboard.compose_page import Circumstances, Said
from socialpub.web.dashboard.compose_problems import FormProblem

MOST_NAMES = 3
STOPPED = ("providerOptions", "tiktok")
NOT_NOW = "a time is filled in, but “Now” is chosen: choose “At a time”, or empty the field “Time”"


@dataclass(frozen=True, slots=True)
class Checked:
    """`is_bad`: something stands in the form that could not be accepted whatever the networks say."""

    said: Said
    is_bad: bool
    draft: Draft | None = None

    def may_be_done(self, *, anyway: bool) -> bool:
        """Whether the post may be accepted; `anyway` also where some of its networks refuse it."""
        return not self.is_bad and (not self.said.problems or (anyway and self.said.may_publish_anyway))


async def check(
    rt: Runtime,
    form: ComposeForm,
    around: Circumstances,
    refused_files: Sequence[str],
    *,
    content: bool = True,
    editing: str | None = None,
) -> Checked:
    """Everything that is wrong with it, and what is worth knowing. Without `content` only its files count. `editing`
    is the post that the form changes."""
    files = [FormProblem(compose_problems.MEDIA, "Media", text) for text in refused_files]
    if not content:
        return Checked(Said(files), bool(files))
    networks = {row["provider"] for row in around.connected if row["id"] in form.profiles}
    body = form.request_body(networks, only_photos=compose_media.only_photos(rt, form))
    shape, mistakes = PostDraft.read(body)
    errors = [*_in_words(form, mistakes.errors), *_time(form)]
    if form.profiles:
        errors += mapping.check_rows(rt, OWNER, body, mistakes.errors)
    own = compose_problems.located(_reworded(errors), form, around.names)
    if shape is None or errors:
        return Checked(Said([*files, *own, *_guidelines(form, around, None)]), True)
    draft = mapping.draft_of(shape)
    checked, post = await rt.read_aside(lambda reader: _ask_networks(rt, reader, draft, editing))
    guidelines = _guidelines(form, around, post)
    refusals = _problems(form, around, checked, known={(one.anchor) for one in guidelines})
    said = Said(
        [*files, *guidelines, *refusals],
        notes=_notes(around, checked),
        fine=[around.names[one.profile_id] for one in checked if not one.problems] if not guidelines else (),
        may_publish_anyway=not files and not guidelines and any(not one.problems for one in checked) and bool(refusals),
    )
    return Checked(said, bool(files or guidelines), draft)


def refused(error: InvalidRequest, form: ComposeForm, around: Circumstances) -> Checked:
    """What the write refused: something changed since the check."""
    return Checked(Said(compose_problems.located(_reworded(error.errors), form, around.names)), True)


def _ask_networks(
    rt: Runtime, reader: Reader, draft: Draft, editing: str | None
) -> tuple[list[CheckedDelivery], Content]:
    # Weighing a text and opening files can take a while: not on the event loop.
    checked = draft_validation.validate(rt, reader, draft, OWNER, editing)
    return checked, post_content.of_draft(rt, reader, draft, [])


def _problems(
    form: ComposeForm, around: Circumstances, checked: Sequence[CheckedDelivery], known: set[str]
) -> list[FormProblem]:
    names: dict[Problem, list[str]] = {}
    for one in checked:
        for problem in one.problems:
            names.setdefault(problem, []).append(around.names[one.profile_id])
    found = []
    for problem, concerned in names.items():
        found += compose_problems.located(
            [problem], form, around.names, _listed(concerned) if len(checked) > 1 else None
        )
    return [problem for problem in found if problem.anchor not in known]


def _notes(around: Circumstances, checked: Sequence[CheckedDelivery]) -> list[tuple[str, Sequence[str]]]:
    """What is worth knowing, once for all profiles that it is the same for."""
    names: dict[tuple[str, ...], list[str]] = {}
    for one in checked:
        if one.notes:
            names.setdefault(tuple(one.notes), []).append(around.names[one.profile_id])
    return [(_listed(concerned), notes) for notes, concerned in names.items()]


def _listed(names: Sequence[str]) -> str:
    """A hundred profiles are not named one by one."""
    return ", ".join(dict.fromkeys(names)) if len(names) <= MOST_NAMES else f"{names[0]} and {len(names) - 1} others"


def _guidelines(form: ComposeForm, around: Circumstances, post: Content | None) -> list[FormProblem]:
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
    return compose_problems.located(problems, form, around.names)


def _time(form: ComposeForm) -> list[FieldError]:
    if form.when != AT:
        return [FieldError(("when",), NOT_NOW)] if form.time and not compose_changes.is_old_time(form) else []
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
