"""`pause` and `resume`: nothing starts meanwhile, and the API goes on accepting."""

import click

from socialpub.cli.appliance import Appliance, pass_appliance
from socialpub.cli.screen import moment, say


@click.command()
@pass_appliance
def pause(appliance: Appliance) -> None:
    """Start no delivery until `resume`. The API goes on accepting posts."""
    from socialpub import deliveries, lanes

    with appliance.open() as rt:
        since = lanes.paused_at(rt.reader)
        rt.write(deliveries.pause)
        if since:
            say(f"Publishing was paused already, since {moment(since)}.")
        else:
            say("Publishing is paused. A call that is on its way ends; nothing else starts.")
        say("Go on with: socialpub admin resume")


@click.command()
@pass_appliance
def resume(appliance: Appliance) -> None:
    """Let deliveries start again; says what is too late."""
    from socialpub import deliveries, durations, lanes

    with appliance.open() as rt:
        if lanes.paused_at(rt.reader) is None:
            say("Publishing was not paused.")
            return
        late = rt.write(deliveries.resume)
        lateness = durations.write(rt.settings.publishing.max_lateness)
        say("Publishing goes on: what is due goes out, oldest first.")
        if late:
            posts = "1 post is" if late == 1 else f"{late} posts are"
            say(f"{posts} more than {lateness} late (publishing.max_lateness) and will not be sent.")
