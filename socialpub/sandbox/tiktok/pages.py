"""TikTok as its viewers see it, and the inbox where drafts wait for their user."""

from dataclasses import dataclass
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from socialpub.sandbox import pages
from socialpub.sandbox.pages import media_response, page
from socialpub.sandbox.tiktok.models import FOLLOWERS, FRIENDS, IN_INBOX, ONLY_ME, PublishTask, TikTokPost
from socialpub.sandbox.tiktok.network import TikTokSandbox

SHOWN_POSTS = 100
FAULTS: pages.FaultChoices = {
    "init_timeout": (
        "video_init",
        "starts a video, but never answers",
        lambda up: up.times_out_after_effect(),
    ),
    "chunk_502": ("upload_chunk", "with a chunk of a video gets a 502", lambda up: up.fails_with(502)),
    "chunk_cut": (
        "upload_chunk",
        "takes a chunk, then the connection breaks",
        lambda up: up.drops_connection_after_effect(),
    ),
    "status_401": ("status_fetch", "for the status finds its token expired", lambda up: up.unauthorized()),
    "capped": (
        "creator_info",
        "for the creator reports a daily cap",
        lambda up: up.refuses("spam_risk_too_many_posts"),
    ),
    "limited": ("video_init", "to start a video is one too many", lambda up: up.rate_limited(60)),
}
AUDIENCES = {ONLY_ME: "Only me", FRIENDS: "Friends", FOLLOWERS: "Followers"}


@dataclass(frozen=True, slots=True)
class TikTokPostView:
    """A post as the templates want it."""

    post: TikTokPost
    author: str
    labels: tuple[str, ...]
    available: frozenset[str]
    """Ids of the media whose bytes are still kept."""


def routes() -> list[Route]:
    """Below `/tiktok`; the permalinks come last, they would catch others."""
    return [
        Route("/feed", show_feed),
        Route("/feed/faults", script_fault, methods=["POST"], middleware=[pages.OWN_FORM]),
        Route("/feed/drafts", finish_draft, methods=["POST"], middleware=[pages.OWN_FORM]),
        Route("/media/{id}", show_media),
        Route("/@{username}", show_profile),
        Route("/@{username}/{kind}/{id}", show_post),
    ]


async def show_feed(request: Request) -> Response:
    return await _feed(request, "")


async def show_profile(request: Request) -> Response:
    return await _feed(request, request.path_params["username"])


async def _feed(request: Request, username: str) -> Response:
    tiktok = _tiktok(request)
    await tiktok.intake.pull_all()
    posts = [post for post in reversed(tiktok.posts) if username in ("", post.username)]
    tasks = [task for task in reversed(tiktok.tasks.all.values()) if username in ("", task.username)]
    return page(
        "tiktok_feed.html",
        username=username,
        posts=[_view(tiktok, post) for post in posts[:SHOWN_POSTS]],
        drafts=[(task, _caption(task)) for task in tasks if task.status == IN_INBOX][:SHOWN_POSTS],
        under_way=sum(task.is_open for task in tasks),
        scripts=pages.fault_labels(FAULTS),
        scripted=pages.chosen_fault_label(FAULTS, request),
        up="../",
    )


def _caption(task: PublishTask) -> str:
    return str(task.post_info.get("title") or "")


async def script_fault(request: Request) -> Response:
    return await pages.script_fault(_tiktok(request), FAULTS, request)


async def finish_draft(request: Request) -> Response:
    """The user opens the notification and posts the draft."""
    chosen = parse_qs((await request.body()).decode("utf-8", "replace")).get("publish_id", [""])[0]
    tiktok = _tiktok(request)
    task = tiktok.tasks.all.get(chosen)
    if task is not None and task.status == IN_INBOX:
        tiktok.tasks.finish_draft(chosen)
    return RedirectResponse("../feed", 303)


async def show_post(request: Request) -> Response:
    tiktok = _tiktok(request)
    wanted = request.path_params
    found = next((post for post in tiktok.posts if post.id == wanted["id"]), None)
    if found is None or found.username != wanted["username"] or wanted["kind"] not in ("video", "photo"):
        return page("tiktok_post.html", 404, shown=None, up="../../../")
    return page("tiktok_post.html", shown=_view(tiktok, found), up="../../../")


async def show_media(request: Request) -> Response:
    tiktok, media_id = _tiktok(request), request.path_params["id"]
    media = tiktok.tasks.media.get(media_id)
    return media_response(request, tiktok.tasks.cache.get(media_id), media.mime_type if media else "")


def _tiktok(request: Request) -> TikTokSandbox:
    tiktok: TikTokSandbox = request.app.state.world.tiktok
    return tiktok


def _view(tiktok: TikTokSandbox, post: TikTokPost) -> TikTokPostView:
    labels = []
    if post.privacy in AUDIENCES:
        labels.append(AUDIENCES[post.privacy])
    if post.options.get("is_aigc"):
        labels.append("Creator labeled as AI-generated")
    if post.options.get("brand_content_toggle"):
        labels.append("Paid partnership")
    elif post.options.get("brand_organic_toggle"):
        labels.append("Promotional content")
    if post.options.get("disable_comment"):
        labels.append("Comments off")
    kept = frozenset(item.id for item in post.media if tiktok.tasks.cache.get(item.id) is not None)
    return TikTokPostView(post, tiktok.accounts[post.open_id].display_name, tuple(labels), kept)
