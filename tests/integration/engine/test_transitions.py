"""The table of the transitions between phases: what it allows, and that it refuses everything else."""

import pytest

from socialpub.db import states
from socialpub.db.delivery import Delivery, Progress
from socialpub.db.states import PHASES, Phase, PhaseName, State
from socialpub.db.tables.delivery_rows import as_json
from socialpub.publishing.delivery import transitions
from socialpub.publishing.delivery.transitions import ROWS, TABLE, PhaseEvent
from tests import manual_tables

SINCE = "2026-10-12T09:00:00.000Z"
DOUBT = {"commits": 1, "why": "timed out", "since": SINCE}
EARLIER = ({"body": "Before", "media": [], "options": {}},)
SAMPLES: list[Phase] = [
    states.Preparing(),
    states.Committing(dated_since="2026-10-12T09:00:01.000Z"),
    states.Processing(commits=1, since=SINCE, message="Stopped by the owner."),
    states.ReadingBack(**DOUBT, readbacks=2, read_back_seconds=20.0),
    states.CommittingAgain(**DOUBT, dated_since=SINCE),
    states.PreparingAgain(**DOUBT),
    states.Confirming(since=SINCE, contents=EARLIER, restored=True, then=PhaseName.PREPARING),
    states.Closing(**DOUBT, message="Stopped by the owner.", restored=True, readbacks=3, read_back_seconds=50.0),
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
@pytest.mark.parametrize("phase", SAMPLES, ids=lambda phase: phase.name)
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


def test_a_restored_delivery_keeps_what_may_be_public_and_forgets_it_when_nothing_was_called():
    delivery = delivery_in(SAMPLES[6])
    transitions.move(delivery, PhaseEvent.CLOSED, message="Stopped by the owner.")
    assert delivery.phase == states.Closing(
        since=SINCE, contents=EARLIER, restored=True, message="Stopped by the owner."
    )
    delivery = delivery_in(SAMPLES[6])
    transitions.move(delivery, PhaseEvent.UNCALLED)
    assert delivery.phase == states.Preparing()


def test_a_new_round_counts_from_its_beginning_and_keeps_what_is_known_of_the_call():
    delivery = delivery_in(SAMPLES[3])
    transitions.move(delivery, PhaseEvent.CLOSED, message="Stopped by the owner.")
    assert delivery.phase == states.Closing(**DOUBT, message="Stopped by the owner.")


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


def test_the_manual_shows_every_phase_and_every_change_of_phase():
    shown = manual_tables.phases()
    for name, phase in PHASES.items():
        assert f"| `{name}` | {phase.__doc__} |" in shown
    for event, before, after in ROWS:
        assert (event.value in shown) is isinstance(after, PhaseName)
        assert f"`{before[-1]}` → `{after}`" in shown or before == (after,) or isinstance(after, State)
