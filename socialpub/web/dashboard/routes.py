"""Every address of the dashboard on one screen."""

from starlette.routing import Route

from socialpub.web.dashboard import calendar, keys, log, overview, profiles, sign_in, system
from socialpub.web.dashboard.compose import edit, media, views
from socialpub.web.dashboard.posts import actions, post_list, post_page
from socialpub.web.http.endpoint import route


def routes() -> list[Route]:
    """Return all routes, in the order of the menu."""
    return [
        route("/", GET=overview.front),
        route("/compose", GET=views.show, POST=views.submit),
        route("/posts/{postId}/edit", GET=edit.edit_form, POST=edit.save),
        route("/artifacts/{artifactId}/thumbnail", GET=media.thumbnail),
        route("/compose/check", POST=views.check_live),
        route("/compose/uploads", POST=media.reserve),
        route("/compose/uploads/complete", POST=media.complete),
        route("/calendar", GET=calendar.show),
        route("/login", GET=sign_in.form, POST=sign_in.submit),
        route("/setup", GET=sign_in.set_up_form, POST=sign_in.set_up),
        route("/logout", POST=sign_in.sign_out),
        route("/posts", GET=post_list.index),
        route("/posts/{postId}", GET=post_page.show),
        route("/posts/{postId}/cancel", GET=actions.ask_cancel, POST=actions.cancel),
        route("/posts/{postId}/publish", GET=actions.ask_publish, POST=actions.publish),
        route("/posts/{postId}/stop", GET=actions.ask_stop, POST=actions.stop),
        route("/posts/{postId}/again", GET=actions.ask_again, POST=actions.publish_again),
        route("/posts/{postId}/reschedule", GET=actions.reschedule_form, POST=actions.reschedule),
        route("/profiles", GET=profiles.index),
        route("/profiles/connect/{provider}", POST=profiles.connect_new),
        route("/profiles/connecting/{consentId}", GET=profiles.waiting, POST=profiles.paste),
        route("/profiles/{profileId}", GET=profiles.show),
        route("/profiles/{profileId}/picture", GET=profiles.avatar),
        route("/profiles/{profileId}/reconnect", POST=profiles.connect_again),
        route("/profiles/{profileId}/refresh", POST=profiles.refresh),
        route("/profiles/{profileId}/rename", POST=profiles.rename),
        route("/profiles/{profileId}/options", POST=profiles.set_options),
        route("/profiles/{profileId}/boards", POST=profiles.create_board),
        route("/profiles/{profileId}/sections", POST=profiles.create_section),
        route(
            "/profiles/{profileId}/disconnect",
            GET=profiles.confirm_disconnect,
            POST=profiles.disconnect,
        ),
        route("/keys", GET=keys.index, POST=keys.create),
        route("/keys/keep-restored", POST=keys.keep_restored),
        route("/keys/{keyId}/revoke", GET=keys.revoke_form, POST=keys.revoke),
        route("/log", GET=log.index),
        route("/log.csv", GET=log.download),
        route("/trail", GET=log.audit_log),
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
