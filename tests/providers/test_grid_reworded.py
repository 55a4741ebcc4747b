"""Sentences are only for people: with other words in every message, each fault has the same outcome."""

import pkgutil
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from typing import Any

import pytest

import socialpub.providers
import socialpub.publishing.delivery
from socialpub.core.post_summary import OUTCOME_UNKNOWN
from socialpub.db.states import State
from socialpub.providers.responses import ProviderError
from socialpub.publishing.delivery.settle import Settlement
from tests.providers import test_answers_of_others, test_grid
from tests.providers.grid import ONE_FAULT_PER_MEANING, Environment, begin, play
from tests.providers.networks import NETWORKS, story_of
from tests.support.appliance import state_of
from tests.support.drain import drain

OTHER = "Other words."
PACKAGES = (socialpub.providers, socialpub.publishing.delivery)


def is_sentence(value: object) -> bool:
    return isinstance(value, str) and " " in value and value.endswith(".")


def reworded(value: Any) -> Any:
    """Return a result with other words in its message or reason."""
    if not is_dataclass(value) or isinstance(value, type):
        return value
    texts = {field.name for field in fields(value)} & {"message", "reason", "hint"}
    return replace(value, **dict.fromkeys(texts, OTHER))


@pytest.fixture(autouse=True)
def other_words(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in PACKAGES:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = import_module(found.name)
            for name, value in list(vars(module).items()):
                if is_sentence(value) and not name.startswith("__"):
                    monkeypatch.setattr(module, name, OTHER)
                elif isinstance(value, dict) and value and all(map(is_sentence, value.values())):
                    monkeypatch.setattr(module, name, dict.fromkeys(value, OTHER))
    begin, store, fail, record = (
        ProviderError.__post_init__, Settlement.store, Settlement.fail, Settlement.record_attempt
    )  # fmt: skip

    def begin_reworded(error: ProviderError) -> None:
        error.message = OTHER
        begin(error)

    def fail_reworded(settlement: Settlement, message: str, *rest: Any, **more: Any) -> None:
        kept = OUTCOME_UNKNOWN if message.startswith(OUTCOME_UNKNOWN) else ""  # the contract names these words
        fail(settlement, kept + OTHER, *rest, **more)

    def record_reworded(settlement: Settlement, outcome: Any, message: str | None = None, *rest: Any, **m: Any) -> None:
        record(settlement, outcome, message and OTHER, *rest, **m)

    monkeypatch.setattr(ProviderError, "__post_init__", begin_reworded)
    monkeypatch.setattr(Settlement, "store", lambda settlement, result: store(settlement, reworded(result)))
    monkeypatch.setattr(Settlement, "fail", fail_reworded)
    monkeypatch.setattr(Settlement, "record_attempt", record_reworded)


CELLS = sorted(cell for cell in test_grid.PAIRWISE if cell[3] in ONE_FAULT_PER_MEANING)[::4]


@pytest.mark.parametrize(("network", "story", "call", "fault"), CELLS)
def test_one_fault_at_one_step(env: Environment, network: str, story: str, call: str, fault: str) -> None:
    play(env, NETWORKS[network], story, call, fault)


@pytest.mark.parametrize("status", [403, 503])
def test_only_a_refusal_in_words_ends_a_post_after_hours(env: Environment, status: int) -> None:
    scene, chosen = story_of("x", "video")
    env.world.x.next(chosen.before[0]).fails_with(status, test_answers_of_others.BLOCKED).forever()
    post = begin(env, scene, chosen, scene.connect(env.rt, env.world))
    drain(env.rt, env.clock, within=7 * 3600)
    assert state_of(env.rt, post) is (State.FAILED if status == 403 else State.QUEUED)
