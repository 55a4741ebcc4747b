"""References to accounts."""

from typing import Any

import pytest

from socialpub.core.references import UnknownReference, find_profile


def profile(
    number: int, provider: str, name: str, username: str | None = None, status: str = "active"
) -> dict[str, Any]:
    more = {} if username is None else {"username": username}
    return {"id": f"01930000-0000-7000-8000-{number:012}", "provider": provider, "name": name, "status": status, **more}


ACME = profile(1, "x", "Acme", "AcmeCorp")
SHOP = profile(2, "pinterest", "Café Straße", "acme.shop")
HOME = profile(3, "pinterest", "Home")
OLD = profile(4, "x", "Acme", "AcmeCorp", status="disconnected")
ALL = [ACME, SHOP, HOME, OLD]


@pytest.mark.parametrize("reference", [ACME["id"].upper(), "X", "@acmecorp", "ACME", "x:acme", " x "])
def test_an_account_has_five_references_in_any_case(reference):
    assert find_profile(reference, ALL) is ACME


@pytest.mark.parametrize("reference", ["CAFÉ STRASSE", "pinterest:Cafe\u0301 straße", "@Acme.Shop"])
def test_a_label_may_contain_any_letters(reference):
    assert find_profile(reference, ALL) is SHOP


@pytest.mark.parametrize(
    ("reference", "count", "candidates"),
    [
        ("pinterest", "2 accounts", [SHOP, HOME]),
        ("acmecorp", "no account", [ACME, SHOP, HOME]),
        ("", "no account", [ACME]),
        ("tiktok", "no account", [ACME, SHOP, HOME]),
        ("x:Home", "no account", [HOME]),
    ],
)
def test_an_unclear_reference_is_refused_with_the_candidates(reference, count, candidates):
    with pytest.raises(UnknownReference) as refused:
        find_profile(reference, ALL)
    assert str(refused.value).startswith(f"“{reference}” names {count}")
    assert all(one["id"] in str(refused.value) for one in candidates) and OLD["id"] not in str(refused.value)


def test_an_id_always_names_its_account():
    imitator = profile(5, "tiktok", ACME["id"])
    assert find_profile(ACME["id"], [imitator, *ALL]) is ACME
    assert find_profile(OLD["id"], ALL) is OLD


def test_a_key_without_accounts_gets_the_remedy():
    with pytest.raises(UnknownReference, match="connect an account"):
        find_profile("x", [OLD])


def test_a_long_list_of_candidates_is_cut():
    many = [profile(number, "x", f"Account {number}") for number in range(30)]
    with pytest.raises(UnknownReference, match=r"names 30 accounts.*Account 19 = .*, and 10 more\.$"):
        find_profile("x", many)
