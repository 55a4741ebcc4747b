"""`socialpub admin`: what the owner does from the terminal, whether or not the appliance runs."""

import click

from socialpub.cli.group import LazyGroup

COMMANDS = {
    "create-key": ("socialpub.cli.admin.keys:create_key", "Make an API key and print it."),
    "list-keys": ("socialpub.cli.admin.keys:list_keys", "Show the keys, never their secrets."),
    "revoke-key": ("socialpub.cli.admin.keys:revoke_key", "Refuse a key from now on."),
    "connect-profile": (
        "socialpub.cli.admin.connect:connect_profile",
        "Connect an account through the network's consent page.",
    ),
    "import-profile": ("socialpub.cli.admin.profiles:import_profile", "Connect an account with tokens you have."),
    "list-profiles": ("socialpub.cli.admin.profiles:list_profiles", "Show the connected accounts."),
    "rename-profile": ("socialpub.cli.admin.profiles:rename_profile", "Change the name of a profile."),
    "disconnect-profile": ("socialpub.cli.admin.profiles:disconnect_profile", "End the connection to an account."),
    "refresh-profile": (
        "socialpub.cli.admin.connect:refresh_profile",
        "Get a profile new tokens and account data now.",
    ),
    "set-options": ("socialpub.cli.admin.profiles:set_options", "Store options for every post to a profile."),
    "list-boards": ("socialpub.cli.admin.profiles:list_boards", "Show the boards of a Pinterest profile."),
    "create-board": ("socialpub.cli.admin.profiles:create_board", "Create a board of a Pinterest profile."),
    "list-posts": ("socialpub.cli.admin.posts:list_posts", "Show posts, the newest first."),
    "show-post": ("socialpub.cli.admin.posts:show_post", "Show what became of a post: plans, attempts, answers."),
    "stop-post": ("socialpub.cli.admin.posts:stop_post", "Send nothing more of a post."),
    "retry-post": ("socialpub.cli.admin.posts:retry_post", "Publish a post again where it failed."),
    "set-password": ("socialpub.cli.admin.appliance:set_password", "Set the dashboard's password."),
    "compact": ("socialpub.cli.admin.appliance:compact", "Write the database anew, as small as its rows are."),
    "notify-test": ("socialpub.cli.admin.appliance:notify_test", "Send a test message to every service."),
    "rotate-secret": ("socialpub.cli.admin.appliance:rotate_secret", "Make a new secret.key; seal everything anew."),
    "pause": ("socialpub.cli.admin.appliance:pause", "Start no delivery until `resume`."),
    "resume": ("socialpub.cli.admin.appliance:resume_publishing", "Let deliveries start again; says what is too late."),
}


@click.group(cls=LazyGroup, places=COMMANDS)
def admin() -> None:
    """Keys, profiles, posts: everything that needs its owner."""
