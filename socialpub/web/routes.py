"""The routes of all URLs."""

from starlette.routing import Route

from socialpub.web.api import health, posts, profiles, uploads
from socialpub.web.dashboard import calendar, keys, log, overview, sign_in, system
from socialpub.web.dashboard import profiles as profile_pages
from socialpub.web.dashboard.compose import media, views
from socialpub.web.dashboard.posts import actions
from socialpub.web.dashboard.posts import pages as post_pages
from socialpub.web.http import files
from socialpub.web.http.endpoint import route
from socialpub.web.mcp import endpoint as agents
from socialpub.web.openapi import document
from socialpub.web.pages import manual, oauth_callback, pages

_POST = {
    "DELETE": "To cancel a scheduled post, send POST /api/v1/posts/{id}/cancel.",
    "PUT": "To change a scheduled post, send PATCH with the fields to change.",
    "POST": "To change a scheduled post, send PATCH. To publish another post, send POST /api/v1/posts.",
}
_PROFILE = {"DELETE": "To disconnect an account, send POST /api/v1/profiles/{id}/disconnect."}
_PROFILES = {"POST": "The owner of the appliance connects accounts."}
"""Hints for methods that callers know from other APIs."""


def routes(*, dashboard: bool = False, mcp: bool = False) -> list[Route]:
    """Return the routes in the order of matching; frequent requests come first."""
    found = [
        route("/api/v1/posts/validate", POST=posts.validate),
        route("/api/v1/posts/{postId}", instead=_POST, GET=posts.show, PATCH=posts.edit),
        route("/api/v1/posts", GET=posts.index, POST=posts.create),
        route("/api/v1/posts/{postId}/cancel", POST=posts.cancel),
        route("/api/v1/posts/{postId}/retry", POST=posts.retry),
        route("/api/v1/posts/{postId}/attempts", GET=posts.attempts),
        route("/api/v1/profiles", instead=_PROFILES, GET=profiles.index),
        route("/api/v1/profiles/{id}", instead=_PROFILE, GET=profiles.show),
        route("/api/v1/profiles/{id}/choices", GET=profiles.list_choices),
        route("/api/v1/profiles/{id}/disconnect", POST=profiles.disconnect),
        route("/api/v1/uploads", POST=uploads.reserve),
        route("/api/v1/uploads/complete", POST=uploads.complete),
        route("/api/v1/uploads/import", POST=uploads.import_url),
        route("/api/v1/publish/logs", GET=profiles.logs),
        route("/storage/uploads/{artifactId}", PUT=uploads.put),
        route("/storage/media/{key:path}", GET=uploads.read_file),
        route("/oauth/{provider}/callback", GET=oauth_callback.callback),
        route("/static/{name:path}", GET=files.show_static),
        route("/problems/{slug}", GET=pages.show_problem),
        route("/manual", GET=manual.show_index),
        route("/manual/{topic}", GET=manual.show_topic),
        route("/manual/images/{name}", GET=manual.show_image),
        route("/healthz", GET=health.live),
        route("/readyz", GET=health.ready),
        route("/metrics", GET=health.metrics),
    ]
    if mcp:
        found.append(route("/mcp", POST=agents.post))
    home = dashboard_routes() if dashboard else [route("/", GET=pages.show_home)]
    return [*found, route("/api/v1/openapi-docs", GET=document.endpoint_for(found)), *home]


def dashboard_routes() -> list[Route]:
    """Return the pages, in the order of the menu."""
    return [
        route("/", GET=overview.front),
        route("/compose", GET=views.show, POST=views.submit),
        route("/posts/{postId}/edit", GET=views.edit_form, POST=views.save),
        route("/artifacts/{artifactId}/thumbnail", GET=media.thumbnail),
        route("/deliveries/{deliveryId}/card-image", GET=post_pages.card_image),
        route("/compose/check", POST=views.check_live),
        route("/compose/uploads", POST=media.reserve),
        route("/compose/uploads/complete", POST=media.complete),
        route("/calendar", GET=calendar.show),
        route("/login", GET=sign_in.form, POST=sign_in.submit),
        route("/setup", GET=sign_in.set_up_form, POST=sign_in.set_up),
        route("/logout", POST=sign_in.sign_out),
        route("/posts", GET=post_pages.index),
        route("/posts/{postId}", GET=post_pages.show),
        route("/posts/{postId}/approve", POST=actions.approve),
        route("/posts/{postId}/cancel", GET=actions.ask_cancel, POST=actions.cancel),
        route("/posts/{postId}/publish", GET=actions.ask_publish, POST=actions.publish),
        route("/posts/{postId}/stop", GET=actions.ask_stop, POST=actions.stop),
        route("/posts/{postId}/again", GET=actions.ask_again, POST=actions.publish_again),
        route("/posts/{postId}/reschedule", GET=actions.reschedule_form, POST=actions.reschedule),
        route("/profiles", GET=profile_pages.index),
        route("/profiles/connect/{provider}", POST=profile_pages.connect_new),
        route("/profiles/connecting/{consentId}", GET=profile_pages.waiting, POST=profile_pages.paste),
        route("/profiles/{profileId}", GET=profile_pages.show),
        route("/profiles/{profileId}/picture", GET=profile_pages.avatar),
        route("/profiles/{profileId}/reconnect", POST=profile_pages.connect_again),
        route("/profiles/{profileId}/refresh", POST=profile_pages.refresh),
        route("/profiles/{profileId}/rename", POST=profile_pages.rename),
        route("/profiles/{profileId}/options", POST=profile_pages.set_options),
        route("/profiles/{profileId}/boards", POST=profile_pages.create_board),
        route("/profiles/{profileId}/sections", POST=profile_pages.create_section),
        route(
            "/profiles/{profileId}/disconnect",
            GET=profile_pages.confirm_disconnect,
            POST=profile_pages.disconnect,
        ),
        route("/keys", GET=keys.index, POST=keys.create),
        route("/keys/keep-restored", POST=keys.keep_restored),
        route("/keys/{keyId}/revoke", GET=keys.revoke_form, POST=keys.revoke),
        route("/log", GET=log.index),
        route("/log.csv", GET=log.download),
        route("/audit", GET=log.audit_log),
        route("/trail", GET=log.redirect_to_audit_log),
        route("/system", GET=system.show),
        route("/system/findings", GET=system.show_findings),
        route("/system/pause", POST=system.pause_publishing),
        route("/system/resume", GET=system.resume_form, POST=system.resume_publishing),
        route("/system/try-held", POST=system.try_held),
        route("/system/copy", POST=system.download_backup),
        route("/system/notify", POST=system.add_address),
        route("/system/notify/{addressId}/remove", GET=system.ask_remove_address, POST=system.remove_address),
        route("/system/notify-test", POST=system.test_addresses),
        route("/system/sessions/{sessionId}/end", POST=sign_in.end_session),
        route("/system/password", POST=sign_in.change_password),
    ]


def verification_routes(file_name: str) -> list[Route]:
    """Return the routes of TikTok's verification file. They must precede the route of the media."""
    return [
        route(f"{folder}/{file_name}", GET=pages.show_tiktok_verification)
        for folder in ("", "/storage/media")
        if file_name
    ]
