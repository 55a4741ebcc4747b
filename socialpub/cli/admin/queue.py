"""`pause` and `resume`: nothing starts meanwhile, and the API goes on accepting."""

import click

from socialpub.cli.context import Appliance, pass_appliance
from socialpub.cli.output import moment, say


@click.command()
@pass_appliance
def pause(appliance: Appliance) -> None:
    """Start no delivery until `resume`. The API goes on accepting posts."""
    from socialpub.db import appliance_state
    from socialpub.publishing import deliveries

    with appliance.open() as rt:
        since = appliance_state.paused_at(rt.reader)
        rt.write(deliveries.pause)
        if since:
            say(f"Publishing was paused already, since {moment(since)}.")
        else:
            say("Publishing is paused. A call that is on its way ends; nothing else starts.")
        say("Go on with: socialpub admin resume")


@click.command()
@click.option(
    "--nothing-was-sent", is_flag=True, help="After a restore: your word that the original sent nothing since the copy."
)
@pass_appliance
def resume(appliance: Appliance, nothing_was_sent: bool) -> None:
    """Let deliveries start again; says what is too late.

    After a restore, what was due since the copy was made is read back from the accounts first, and never sent.
    """
    from socialpub.core import durations
    from socialpub.db import appliance_state
    from socialpub.publishing.resume import resume as resume_publishing

    with appliance.open() as rt:
        if appliance_state.paused_at(rt.reader) is None:
            say("Publishing was not paused.")
            return
        resumed = rt.write(resume_publishing, nothing_was_sent=nothing_was_sent)
        late = resumed.too_late
        lateness = durations.write(rt.settings.publishing.max_lateness)
        say("Publishing goes on: what is due goes out, oldest first.")
        if nothing_was_sent and not resumed.restored:
            say("Nothing was restored here since the last resume, so --nothing-was-sent changes nothing.")
        if resumed.read_back:
            count = "1 delivery was" if resumed.read_back == 1 else f"{resumed.read_back} deliveries were"
            say(f"{count} due since the copy was made: the accounts are read back, and none of it is sent.")
        if late:
            posts = "1 post is" if late == 1 else f"{late} posts are"
            say(f"{posts} more than {lateness} late (publishing.max_lateness) and will not be sent.")
