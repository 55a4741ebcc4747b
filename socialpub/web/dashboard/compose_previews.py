"""How what stands in the form would look, whether or not it could be accepted."""

from socialpub.providers.registry import PROVIDERS
from socialpub.publishing import previews
from socialpub.publishing.drafts import Draft, DraftMedia
from socialpub.publishing.previews import PostPreview
from socialpub.runtime import Runtime
from socialpub.web.dashboard import compose_media
from socialpub.web.dashboard.compose_form import ComposeForm


async def of_form(rt: Runtime, form: ComposeForm) -> list[PostPreview]:
    """For the readers of each chosen profile."""
    draft = Draft(
        body=form.body.strip() or None,
        scheduled_at=None,
        profiles=form.profiles,
        media=tuple(DraftMedia(item.artifact_id, item.alt.strip() or None) for item in form.media),
        options=form.sent_options(PROVIDERS, only_photos=compose_media.only_photos(rt, form)),
    )
    # A text is weighed for it: not on the event loop.
    return await rt.read_aside(lambda reader: previews.of_draft(rt, reader, draft)) if form.profiles else []
