"""The file by which TikTok verifies that a domain, or the prefix of our media, is ours."""

from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.endpoint import endpoint
from socialpub.web.request import Request


@endpoint(scope=None)
async def show(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
    """The content of `[providers.tiktok] verification_file`, at the site's root and under the media prefix."""
    content = rt.settings.providers.tiktok.verification_content
    return Answer(200, content.encode(), content_type=b"text/plain; charset=utf-8")
