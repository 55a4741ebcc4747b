"""`security.md` has a line for every rule, and what it names as the proof of each exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TABLE = (HERE / "security.md").read_text()
API = dict(zip([f"API{number}" for number in range(1, 11)], (4, 10, 6, 7, 4, 2, 6, 10, 8, 4), strict=True))
"""How many rules the page of each risk lists. API6 names two: the flows, and how machines are limited."""
OTHERS = {"FU": 22, "IN": 11}
RULES = [f"{risk}.{number}" for risk, most in API.items() for number in range(1, most + 1)]
RULES += [f"{kind}{number}" for kind, most in OTHERS.items() for number in range(1, most + 1)]
LINE = re.compile(r"^\| ([A-Z]+[\d.]+) [^|]+\| [^|]+\| ([^|]+) \|$", re.MULTILINE)
PROOFS = {found[1]: re.findall(r"`([^`]+)`", found[2]) for found in LINE.finditer(TABLE)}


@cache
def functions_of(file: str) -> set[str]:
    """The tests that pytest collects there."""
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    found = {one.name for one in ast.parse((HERE / file).read_text()).body if isinstance(one, functions)}
    return {name for name in found if name.startswith("test_")}


def test_every_rule_has_its_line_and_every_line_a_test() -> None:
    assert list(PROOFS) == RULES
    assert [rule for rule, tests in PROOFS.items() if not tests] == []


@pytest.mark.parametrize("rule", PROOFS)
def test_every_test_that_is_named_exists(rule: str) -> None:
    for named in PROOFS[rule]:
        file, _, test = named.partition("::")
        assert re.fullmatch(r"([a-z0-9_]+/)*test_\w+\.py", file), named
        assert functions_of(file) >= ({test} if test else set()), named
        assert functions_of(file), named
