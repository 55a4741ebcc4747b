"""`pause` and `resume`: nothing starts meanwhile, and the API goes on accepting."""

from collections.abc import Sequence

import click

from socialpub.accounts import remedies, restored_keys
from socialpub.accounts.api_keys import UnrevokedKey
from socialpub.accounts.remedies import Door
from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.output import format_time, print_note, print_table
from socialpub.db import appliance_state
from socialpub.ops import resume_sentences
from socialpub.publishing import deliveries, resume
from socialpub.runtime import Runtime


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
    print_note(f"To continue, {remedies.resume()}.")


@click.command("resume")
@click.option(
    "--nothing-was-sent",
    is_flag=True,
    help="After a restore: your word that the original sent nothing since the backup.",
)
@click.option("--revoke-keys", is_flag=True, help="After a restore: revoke the API keys that came with the backup.")
@click.option("--keep-keys", is_flag=True, help="After a restore: keep these keys, and end the report about them.")
@pass_command_context
def resume_publishing(context: CommandContext, nothing_was_sent: bool, revoke_keys: bool, keep_keys: bool) -> None:
    """Let deliveries start again; says what is too late.

    After a restore, what was due since the backup was made is looked up on the accounts first, and never sent; what is
    still scheduled is listed on standard output. The API keys that came with the backup are listed on standard error
    until you keep or revoke them. Keys created after the restore are not affected.
    """
    if revoke_keys and keep_keys:
        raise click.UsageError("--revoke-keys and --keep-keys exclude each other.")
    with context.open() as rt:
        if revoke_keys or keep_keys:
            _settle_keys(rt, revoke=revoke_keys)
        else:
            list_valid_keys(restored_keys.undecided(rt.reader, rt.stamp()))
        if appliance_state.paused_at(rt.reader) is None:
            held = rt.write(resume.try_held)
            print_note("Publishing was not paused.")
            if held:
                print_note("What networks refuse this app is tried again at once.")
            return
        resumed = rt.write(resume.resume, nothing_was_sent=nothing_was_sent)
    for sentence in resume_sentences.results(resumed):
        print_note(sentence)
    if nothing_was_sent and not resumed.restored:
        print_note("Nothing was restored here since the last resume, so --nothing-was-sent changes nothing.")
    if resumed.scheduled:
        print_note(resume_sentences.STILL_SCHEDULED)
        rows = [(post.id, format_time(post.scheduled_at), post.body or "") for post in resumed.scheduled]
        print_table(("Post", "Scheduled", "Text"), rows, "")
    too_late = resume_sentences.too_late(resumed.too_late, rt.settings)
    if too_late:
        print_note(too_late)


def list_valid_keys(keys: Sequence[UnrevokedKey]) -> None:
    """List the keys that came with a restored backup, and how the owner settles them."""
    if keys:
        print_note(f"{resume_sentences.valid_keys(keys)} {resume_sentences.KEYS_MAY_BE_REVOKED}")
        for key in keys:
            print_note(f"  {resume_sentences.valid_key(key)}")
        print_note(resume_sentences.decide_keys(Door.SHELL))


def _settle_keys(rt: Runtime, *, revoke: bool) -> None:
    settled = rt.write(restored_keys.revoke if revoke else restored_keys.keep)
    if not settled:
        print_note("No valid API key of a restored backup waits for a decision.")
        return
    keys = "1 API key" if len(settled) == 1 else f"{len(settled)} API keys"
    print_note(f"{'Revoked' if revoke else 'Kept'} {keys} of the restored backup:")
    for key in settled:
        print_note(f"  {resume_sentences.valid_key(key)}")


def note_paused(rt: Runtime) -> None:
    """Tell whoever expects something to be published that nothing is."""
    told = resume_sentences.paused(rt.reader, Door.SHELL)
    if told is not None:
        print_note(" ".join(told))
