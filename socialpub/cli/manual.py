"""`socialpub manual`: the operations manual as text."""

import click

from socialpub.cli.output import print_line, print_markdown, print_note
from socialpub.core import manual
from socialpub.core.validation import did_you_mean, nearest


@click.command("manual")
@click.argument("topic", metavar="[TOPIC]", required=False)
def show_manual(topic: str | None) -> None:
    """Print a TOPIC of the manual, or the list of topics.

    The appliance also serves the manual at {base_url}/manual.
    """
    topics = manual.list_topics()
    if topic is None:
        width = max(map(len, topics))
        for entry in topics.values():
            print_line(f"{entry.name:<{width}}  {entry.summary}")
        print_note("To read a topic, add its name.")
        return
    name = topic.lower().removesuffix(".md")
    if name not in topics:
        raise click.UsageError(f"The topic {topic} {did_you_mean(nearest(name, topics), topics)}")
    print_markdown(manual.read_topic(name))
