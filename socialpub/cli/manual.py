"""`socialpub manual`: the operations manual as text."""

import sys

import click

from socialpub.cli.output import print_line, print_note
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
    text = manual.read_topic(name)
    if sys.stdout.isatty():
        _print_styled(text)
    else:
        click.echo(text, nl=False)


def _print_styled(text: str) -> None:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.markdown import CodeBlock, Markdown
    from rich.text import Text

    class UnwrappedCode(CodeBlock):
        """A line of code stays one line, so that a person can copy a command from the terminal."""

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            yield Text(str(self.text).rstrip(), style="bold", no_wrap=True, overflow="ignore")

    class ManualPage(Markdown):
        elements = {**Markdown.elements, "fence": UnwrappedCode}  # noqa: RUF012

    Console(highlight=False).print(ManualPage(text), crop=False)
