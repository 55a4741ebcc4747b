"""`socialpub admin`: the owner's commands. They work even while the appliance is not running."""

from datetime import timedelta
from typing import Any

import click

from socialpub.cli.main import LazyGroup
from socialpub.core import units
from socialpub.core.clock import parse_id


class IdType(click.ParamType[str]):
    """An id in its canonical form, as the `list-…` commands show it."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        parsed = parse_id(str(value))
        if parsed is None:
            self.fail(f"{value!r} is not an id, such as 019a4c8e-7c1b-7a55-9f0e-3b1f0c2d4e5f.", param, ctx)
        return parsed


class DurationType(click.ParamType[timedelta]):
    """`90s`, `15m`, `24h`, `90d`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        try:
            duration = units.parse_duration(str(value))
        except ValueError as error:
            self.fail(f"{value!r}: {error}.", param, ctx)
        if not duration:
            self.fail("it must be longer than zero.", param, ctx)
        return duration


ID = IdType()
DURATION = DurationType()


SECTIONS = {
    "Run": {
        "set-password": ("socialpub.cli.admin.appliance:set_password", "Set the dashboard's password."),
        "pause": ("socialpub.cli.admin.appliance:pause", "Pause publishing until `resume`."),
        "resume": ("socialpub.cli.admin.appliance:resume_publishing", "Resume publishing after a pause or a restore."),
        "notify-test": ("socialpub.cli.admin.appliance:notify_test", "Send a test message to every service."),
        "add-webhook": ("socialpub.cli.admin.webhooks:add_webhook", "Send events to a URL, and print the secret."),
        "list-webhooks": (
            "socialpub.cli.admin.webhooks:list_webhooks",
            "List the webhooks with lag and last response.",
        ),
        "remove-webhook": ("socialpub.cli.admin.webhooks:remove_webhook", "Stop sending events to a URL."),
        "test-webhook": ("socialpub.cli.admin.webhooks:test_webhook", "Send a test event."),
        "rotate-secret": ("socialpub.cli.admin.appliance:rotate_secret", "Create a new secret.key and encrypt again."),
    },
    "Publish": {
        "list-posts": ("socialpub.cli.admin.posts:list_posts", "List posts, the newest first."),
        "show-post": ("socialpub.cli.admin.posts:show_post", "Show a post with its plans and attempts."),
        "approve-post": ("socialpub.cli.admin.posts:approve_post", "Approve a post that waits for you."),
        "stop-post": ("socialpub.cli.admin.posts:stop_post", "Stop the open deliveries of a post."),
        "retry-post": ("socialpub.cli.admin.posts:retry_post", "Retry the failed deliveries of a post."),
    },
    "Accounts": {
        "connect-profile": ("socialpub.cli.admin.profiles:connect_profile", "Connect an account of a network."),
        "import-profile": ("socialpub.cli.admin.profiles:import_profile", "Connect an account with existing tokens."),
        "list-profiles": ("socialpub.cli.admin.profiles:list_profiles", "List the connected accounts."),
        "rename-profile": ("socialpub.cli.admin.profiles:rename_profile", "Change the name of a profile."),
        "disconnect-profile": ("socialpub.cli.admin.profiles:disconnect_profile", "End the connection to an account."),
        "refresh-profile": (
            "socialpub.cli.admin.profiles:refresh_profile",
            "Renew the tokens and account data of a profile.",
        ),
        "set-options": ("socialpub.cli.admin.profiles:set_options", "Set default options for the posts of a profile."),
        "list-boards": ("socialpub.cli.admin.profiles:list_boards", "List the boards of a Pinterest profile."),
        "create-board": ("socialpub.cli.admin.profiles:create_board", "Create a board of a Pinterest profile."),
    },
    "Keys": {
        "create-key": ("socialpub.cli.admin.keys:create_key", "Create an API key and print it."),
        "list-keys": ("socialpub.cli.admin.keys:list_keys", "List the keys without their secrets."),
        "revoke-key": ("socialpub.cli.admin.keys:revoke_key", "Revoke a key."),
    },
}
"""The commands under the headings of the manual's page Commands."""


@click.group(cls=LazyGroup, sections=SECTIONS)
def admin() -> None:
    """Manage keys, profiles, posts and the appliance."""
