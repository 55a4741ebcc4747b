"""The table of the transitions between phases: what it allows, and that it refuses everything else."""

from dataclasses import replace

import pytest

from socialpub.db import states
from socialpub.db.delivery import Delivery, Progress
from socialpub.db.states import PHASES, Phase, PhaseName, Preparing, State, WaitingForPost, WaitingForReconnect
from socialpub.db.tables.delivery_rows import as_json
from socialpub.publishing.delivery import transitions
from socialpub.publishing.delivery.transitions import ROWS, TABLE, PhaseEvent

SINCE = "2026-10-12T09:00:00.000Z"
DOUBT = {"commits": 1, "why": "timed out", "since": SINCE}
SAMPLES: list[Phase] = [
    states.Preparing(),
    states.Committing("2026-10-12T09:00:01.000Z"),
    states.Processing(1, SINCE, None, "Stopped by the owner."),
    states.ReadingBack(**DOUBT, readbacks=2, read_back_seconds=20.0),
    states.CommittingAgain(**DOUBT, dated_since=SINCE),
    states.PreparingAgain(**DOUBT),
    states.Confirming(**DOUBT),
    states.Closing(**DOUBT, message="Stopped by the owner."),
    states.Inherited(SINCE, ({"body": "Before", "media": [], "options": {}},)),
    states.ConfirmingInherited(SINCE),
    states.ReadingBackInherited(SINCE, (), "maybe sent", 1, None, 3, 50.0),
    states.ProcessingInherited(SINCE, "maybe sent"),
    states.WaitingForReconnect(states.ReadingBack(**DOUBT)),
    states.WaitingForPost(states.Inherited(SINCE), "p-1"),
    states.WaitingForApproval(states.Inherited(SINCE), SINCE, "agent"),
]
ENDS = {State.PUBLISHED, State.FAILED, State.UNCONFIRMED}


def delivery_in(phase):
    return Delivery(
        "d", "p", "a", "x", "account", State.QUEUED, {}, SINCE, SINCE, SINCE, None, [("create_post", "commit")], 0, {},
        Progress(phase), SINCE, "", None,
    )  # fmt: skip


def test_every_phase_has_a_sample():
    assert [type(phase) for phase in SAMPLES] == list(PHASES.values())


@pytest.mark.parametrize("phase", SAMPLES, ids=lambda phase: phase.name)
def test_a_row_stores_a_phase_with_all_its_fields(phase):
    progress = Progress(phase, tries=2, stopped=True)
    assert Progress.from_json(as_json(progress.as_dict())) == progress


@pytest.mark.parametrize("event", PhaseEvent, ids=lambda event: event.name)
@pytest.mark.parametrize("phase", SAMPLES[:-3], ids=lambda phase: phase.name)
def test_an_event_leads_where_the_table_says_and_nowhere_else(phase, event):
    delivery = delivery_in(phase)
    values = {"commits": 2, "why": "cut off", "since": SINCE} if event is PhaseEvent.UNKNOWN else {}
    if (phase.name, event) not in TABLE:
        with pytest.raises(transitions.UnknownTransition):
            transitions.move(delivery, event, **values)
        assert delivery.phase == phase
        return
    transitions.move(delivery, event, **values)
    target = TABLE[phase.name, event]
    if isinstance(target, State):
        assert delivery.phase == phase
    else:
        assert delivery.progress.phase.name is target


@pytest.mark.parametrize("phase", SAMPLES[:-3], ids=lambda phase: phase.name)
def test_a_wait_for_the_owner_resumes_the_phase_before_it(phase):
    delivery = delivery_in(phase)
    transitions.move(delivery, PhaseEvent.NEEDS_RECONNECT)
    assert delivery.progress.phase == WaitingForReconnect(phase)
    assert delivery.phase == phase
    transitions.move(delivery, PhaseEvent.RECONNECTED)
    assert delivery.progress.phase == phase


def test_what_happens_during_a_wait_changes_the_phase_that_it_resumes():
    for wait in (WaitingForReconnect(Preparing()), WaitingForPost(Preparing(), "p-1")):
        delivery = delivery_in(wait)
        transitions.move(delivery, PhaseEvent.RESTORED_AHEAD, since=SINCE)
        assert delivery.progress.phase == replace(wait, resumes=states.Inherited(SINCE))


def test_no_other_wait_and_no_sending_phase_replaces_the_wait_for_an_approval():
    for phase in (Preparing(), states.Inherited(SINCE)):
        delivery = delivery_in(states.WaitingForApproval(phase, SINCE))
        for event in (PhaseEvent.NEEDS_RECONNECT, PhaseEvent.NEEDS_POST, PhaseEvent.NEEDS_APPROVAL):
            if (phase.name, event) in TABLE:
                with pytest.raises(transitions.UnknownTransition):
                    transitions.move(delivery, event)
        transitions.move(delivery, PhaseEvent.RESTORED_AHEAD, since=SINCE)
        assert delivery.waits_for_approval, "the post may still be sent"
        transitions.move(delivery, PhaseEvent.RESTORED_DUE, since=SINCE)
        assert delivery.progress.phase.name is PhaseName.READING_BACK_INHERITED, "the post is never sent"


def test_a_new_round_counts_from_its_beginning_and_keeps_what_is_known_of_the_call():
    delivery = delivery_in(SAMPLES[3])
    transitions.move(delivery, PhaseEvent.CLOSED, message="Stopped by the owner.")
    assert delivery.phase == replace(SAMPLES[7], message="Stopped by the owner.")


def test_every_row_can_be_reached_from_a_new_delivery():
    reached, waiting = set[object](), [PhaseName.PREPARING]
    while waiting:
        phase = waiting.pop()
        for target in (TABLE.get((phase, event)) for event in PhaseEvent):
            if target is not None and target not in reached:
                reached.add(target)
                if isinstance(target, PhaseName):
                    waiting.append(target)
    assert reached >= {before for _, phases, _ in ROWS for before in phases}
    assert reached >= ENDS


def test_the_manual_shows_every_phase_and_every_row():
    shown = transitions.markdown()
    for name, phase in PHASES.items():
        assert f"| `{name}` | {phase.__doc__} |" in shown
    assert shown.count("\n| ") == len(PHASES) + len(ROWS) + 1
    for event in PhaseEvent:
        assert event.value in shown
