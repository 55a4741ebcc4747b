"""Every address of the dashboard on one screen."""

from starlette.routing import Route

from socialpub.web.dashboard import (
    calendar,
    compose,
    compose_live,
    compose_uploads,
    copies,
    findings,
    keys,
    log,
    overview,
    pause,
    post_actions,
    post_again,
    posts,
    profile_connection,
    profiles,
    reschedule,
    sessions,
    sign_in,
    system,
    thumbnails,
    trail,
)
from socialpub.web.endpoint import Answering, Methods


def routes() -> list[Route]:
    """In the order of the navigation."""
    return [
        _route("/", GET=overview.front),
        _route("/compose", GET=compose.show, POST=compose.submit),
        _route("/posts/{postId}/edit", GET=compose.edit_form, POST=compose.save),
        _route("/artifacts/{artifactId}/thumbnail", GET=thumbnails.show),
        _route("/compose/check", POST=compose_live.show),
        _route("/compose/uploads", POST=compose_uploads.reserve),
        _route("/compose/uploads/complete", POST=compose_uploads.complete),
        _route("/calendar", GET=calendar.show),
        _route("/login", GET=sign_in.form, POST=sign_in.submit),
        _route("/setup", GET=sign_in.set_up_form, POST=sign_in.set_up),
        _route("/logout", POST=sign_in.sign_out),
        _route("/posts", GET=posts.index),
        _route("/posts/{postId}", GET=posts.show),
        _route("/posts/{postId}/cancel", GET=post_actions.ask_cancel, POST=post_actions.cancel),
        _route("/posts/{postId}/publish", GET=post_actions.ask_publish, POST=post_actions.publish),
        _route("/posts/{postId}/stop", GET=post_actions.ask_stop, POST=post_actions.stop),
        _route("/posts/{postId}/again", GET=post_again.ask, POST=post_again.submit),
        _route("/posts/{postId}/reschedule", GET=reschedule.form, POST=reschedule.submit),
        _route("/profiles", GET=profiles.index),
        _route("/profiles/connect/{provider}", POST=profile_connection.connect_new),
        _route("/profiles/{profileId}", GET=profiles.show),
        _route("/profiles/{profileId}/picture", GET=profiles.picture),
        _route("/profiles/{profileId}/reconnect", POST=profile_connection.connect_again),
        _route("/profiles/{profileId}/refresh", POST=profile_connection.refresh),
        _route("/profiles/{profileId}/rename", POST=profiles.rename),
        _route("/profiles/{profileId}/options", POST=profiles.set_options),
        _route(
            "/profiles/{profileId}/disconnect",
            GET=profile_connection.confirm_disconnect,
            POST=profile_connection.disconnect,
        ),
        _route("/keys", GET=keys.index, POST=keys.create),
        _route("/keys/{keyId}/revoke", GET=keys.revoke_form, POST=keys.revoke),
        _route("/log", GET=log.index),
        _route("/log.csv", GET=log.download),
        _route("/trail", GET=trail.index),
        _route("/system", GET=system.show),
        _route("/system/findings", GET=findings.show),
        _route("/system/pause", POST=pause.pause),
        _route("/system/resume", GET=pause.resume_form, POST=pause.submit),
        _route("/system/try-held", POST=pause.try_held),
        _route("/system/copy", POST=copies.download),
        _route("/system/sessions/{sessionId}/end", POST=sessions.end_session),
        _route("/system/password", POST=sessions.change_password),
    ]


def _route(path: str, **methods: Answering) -> Route:
    return Route(path, Methods(**methods), methods=None)
