"""TikTok as its viewers see it, and the inbox where drafts wait for their user."""

from dataclasses import dataclass
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from socialpub.sandbox import page, scripting
from socialpub.sandbox.served import serve
from socialpub.sandbox.tiktok.network import TikTok
from socialpub.sandbox.tiktok.tasks import IN_INBOX, Post, Task
from socialpub.sandbox.tiktok.users import FOLLOWERS, FRIENDS, ONLY_ME

SHOWN_POSTS = 100
SCRIPTS: scripting.Scripts = {
    "init_timeout": (
        "video_init",
        "to begin a video begins it, but never answers",
        lambda up: up.times_out_after_effect(),
    ),
    "chunk_502": ("upload_chunk", "with a chunk of a film gets a 502", lambda up: up.fails_with(502)),
    "chunk_cut": (
        "upload_chunk",
        "with a chunk is taken, then the connection breaks",
        lambda up: up.drops_connection_after_effect(),
    ),
    "status_401": ("status_fetch", "for the status is told that its token has expired", lambda up: up.unauthorized()),
    "capped": (
        "creator_info",
        "for the creator is told of a daily cap",
        lambda up: up.refuses("spam_risk_too_many_posts"),
    ),
    "limited": ("video_init", "to begin a video is one too many", lambda up: up.rate_limited(60)),
}
AUDIENCES = {ONLY_ME: "Only me", FRIENDS: "Friends", FOLLOWERS: "Followers"}


@dataclass(frozen=True, slots=True)
class Shown:
    """A post as the templates want it."""

    post: Post
    author: str
    labels: tuple[str, ...]
    available: frozenset[str]
    """Ids of the media whose bytes are still kept."""


def routes() -> list[Route]:
    """Below `/tiktok`; the permalinks come last, they would catch others."""
    return [
        Route("/feed", show_feed),
        Route("/feed/faults", script_fault, methods=["POST"]),
        Route("/feed/drafts", finish_draft, methods=["POST"]),
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
    await tiktok.tasks.pull_all()
    posts = [post for post in reversed(tiktok.posts) if username in ("", post.username)]
    tasks = [task for task in reversed(tiktok.tasks.all.values()) if username in ("", task.username)]
    return _page(
        "tiktok_feed.html",
        username=username,
        posts=[_show(tiktok, post) for post in posts[:SHOWN_POSTS]],
        drafts=[(task, _caption(task)) for task in tasks if task.status == IN_INBOX][:SHOWN_POSTS],
        under_way=sum(task.is_open for task in tasks),
        scripts=scripting.offered(SCRIPTS),
        scripted=scripting.noted(SCRIPTS, request),
        up="../",
    )


def _caption(task: Task) -> str:
    return str(task.post_info.get("title") or "")


async def script_fault(request: Request) -> Response:
    return await scripting.arrange(_tiktok(request), SCRIPTS, request)


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
        return _page("tiktok_post.html", 404, shown=None, up="../../../")
    return _page("tiktok_post.html", shown=_show(tiktok, found), up="../../../")


async def show_media(request: Request) -> Response:
    tiktok, media_id = _tiktok(request), request.path_params["id"]
    media = tiktok.tasks.media.get(media_id)
    return serve(request, tiktok.tasks.shelf.get(media_id), media.mime_type if media else "")


def _tiktok(request: Request) -> TikTok:
    tiktok: TikTok = request.app.state.world.tiktok
    return tiktok


def _page(template: str, status: int = 200, **facts: object) -> Response:
    return HTMLResponse(page.render(template, **facts), status, page.HEADERS)


def _show(tiktok: TikTok, post: Post) -> Shown:
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
    kept = frozenset(item.id for item in post.media if tiktok.tasks.shelf.get(item.id) is not None)
    return Shown(post, tiktok.users[post.open_id].display_name, tuple(labels), kept)
