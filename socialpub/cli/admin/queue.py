"""`pause` and `resume`: nothing starts meanwhile, and the API goes on accepting."""

import click

from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.output import format_time, print_note, print_table
from socialpub.core import durations
from socialpub.db import appliance_state
from socialpub.publishing import deliveries, resume


@click.command()
@pass_command_context
def pause(context: CommandContext) -> None:
    """Start no delivery until `resume`. The API goes on accepting posts."""
    with context.open() as rt:
        since = appliance_state.paused_at(rt.reader)
        rt.write(deliveries.pause)
    if since:
        print_note(f"Publishing was paused already, since {format_time(since)}.")
    else:
        print_note("Publishing is paused. Calls in progress are finished; nothing else starts.")
    print_note("To continue, run: socialpub admin resume")


@click.command("resume")
@click.option(
    "--nothing-was-sent", is_flag=True, help="After a restore: your word that the original sent nothing since the copy."
)
@pass_command_context
def resume_publishing(context: CommandContext, nothing_was_sent: bool) -> None:
    """Let deliveries start again; says what is too late.

    After a restore, what was due since the copy was made is looked up on the accounts first, and never sent; what is
    still scheduled is listed on standard output.
    """
    with context.open() as rt:
        if appliance_state.paused_at(rt.reader) is None:
            print_note("Publishing was not paused.")
            return
        resumed = rt.write(resume.resume, nothing_was_sent=nothing_was_sent)
        most_lateness = durations.write(rt.settings.publishing.max_lateness)
    print_note("Publishing continues: what is due is sent, oldest first.")
    if nothing_was_sent and not resumed.restored:
        print_note("Nothing was restored here since the last resume, so --nothing-was-sent changes nothing.")
    if resumed.read_back:
        were = "1 delivery was" if resumed.read_back == 1 else f"{resumed.read_back} deliveries were"
        print_note(f"{were} due since the copy was made: the accounts are searched for them, and none of them is sent.")
    if resumed.scheduled:
        print_note(
            "Still scheduled, and sent at its time unless the account shows it by then. The original may have changed "
            "or canceled some of it since the copy: cancel here what should not go out."
        )
        rows = [(post.id, format_time(post.scheduled_at), post.body or "") for post in resumed.scheduled]
        print_table(("Post", "Scheduled", "Text"), rows, "")
    if resumed.too_late:
        posts = "1 post is" if resumed.too_late == 1 else f"{resumed.too_late} posts are"
        print_note(f"{posts} more than {most_lateness} late (publishing.max_lateness) and will not be sent.")
