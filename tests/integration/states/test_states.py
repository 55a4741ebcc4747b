"""No order of requests, faults, deaths and times makes the appliance say or do what its specification forbids."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.integration.states.machine import StateMachine


def play(examples: int, steps: int, *, derandomize: bool) -> None:
    run_state_machine_as_test(
        StateMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=derandomize,
            database=None,
            deadline=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_no_order_of_events_makes_a_false_report() -> None:
    play(12, 25, derandomize=True)


@pytest.mark.endurance
def test_no_order_of_events_makes_a_false_report_in_a_long_search() -> None:
    play(100, 40, derandomize=False)
