"""Hypothesis generates the same examples in every clone, independent of other loaded modules."""

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def drawn() -> list[int]:
    """Return the integers that one generated test draws."""
    numbers: list[int] = []

    @settings(max_examples=300)
    @given(st.integers())
    def draw(number: int) -> None:
        numbers.append(number)

    draw()
    return numbers


def test_no_example_comes_from_a_module_that_happens_to_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = drawn()
    source = tmp_path / "with_constants.py"
    source.write_text(f"NUMBERS = {[10**12 + 7919 * number for number in range(50)]}\n")
    spec = importlib.util.spec_from_file_location("with_constants", source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "with_constants", module)
    assert drawn() == before
