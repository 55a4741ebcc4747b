"""Posts are found by a part of their text, in any script and without wildcards."""

from datetime import timedelta

import pytest

from socialpub.accounts.api_keys import OWNER
from socialpub.db.models import PostRow
from socialpub.db.queries import post_list
from socialpub.db.queries.post_list import PostFilter
from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import Draft
from socialpub.runtime import Runtime
from tests.support.appliance import accept
from tests.support.hand_clock import HandClock

TEXTS = (
    "Die Straßenbahnhaltestelle in Überlingen ist GRÖSSER geworden",
    "今日は新しいパンを焼きました",
    "Sunrise 🌅 over the bay #goldenHour",
    "Read https://example.com/a_b?q=100%25&x=[1]*",
    'He said "fish OR chips" -- NEAR(the, pier) AND NOT cheap',
    "O'Brien\\s path: C:\\temp",
    None,
)


@pytest.fixture
def stock(rt: Runtime, profile: str, clock: HandClock) -> list[str]:
    made = []
    for text in TEXTS:
        made.append(accept(rt, profile, body=text or "x"))
        if text is None:
            rt.db.write(lambda tx: tx.update(PostRow, made[-1], body=None))
        clock.forward(1)
    return made


def found(rt: Runtime, stock: list[str], text: str, **filters: object) -> list[int]:
    """Return the positions of the posts that match this text, newest first."""
    page = post_list.load_page(rt.db, PostFilter(text=text, **filters))  # type: ignore[arg-type]
    shown = [next(at for at, post in enumerate(stock) if post.encode() in one) for one in page.shown]
    assert page.total == len(shown)
    return shown


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("bahnhalt", [0]),
        ("STRASSENBAHN", []),
        ("straßenBAHN", [0]),
        ("überl", [0]),
        ("ÜBERLINGEN", [0]),
        ("größer", []),  # GRÖSSER has no ß: another spelling is another text
        ("新しいパン", [1]),
        ("パ", [1]),
        ("🌅", [2]),
        ("#goldenhour", [2]),
        ("example.com/a_b", [3]),
        ("a.b", []),
        ("axb", []),
        ("100%", [3]),
        ("%", [3]),
        ("[1]*", [3]),
        ("*", [3]),
        ("?", [3]),
        ('"fish or chips"', [4]),
        ("chips near", []),
        ("near(the", [4]),
        ("o'brien\\s", [5]),
        ("c:\\", [5]),
        ("path", [5]),
        ("e", [5, 4, 3, 2, 0]),
    ],
)
def test_a_text_is_found_in_any_case(rt: Runtime, stock: list[str], text: str, places: list[int]) -> None:
    assert found(rt, stock, text) == places


def test_letters_of_foreign_scripts_match_in_both_cases_and_no_others_do(rt: Runtime, profile: str) -> None:
    accept(rt, profile, body="ПРИВЕТ, ΑΘΉΝΑ")
    for text, count in (("привет", 1), ("Αθήνα", 1), ("прикет", 0), ("приве", 1), ("_ривет", 0)):
        assert post_list.load_page(rt.db, PostFilter(text=text)).total == count, text


@pytest.mark.parametrize("text", ["\ud800", "a\0", "a" * 60_000, "ä" * 60_000, "%" * 10_000, "𐐀" * 10_000])
def test_a_text_that_no_post_can_contain_is_not_found(rt: Runtime, profile: str, text: str) -> None:
    accept(rt, profile, body="a")
    assert post_list.load_page(rt.db, PostFilter(text=text)).total == 0


def test_a_changed_text_replaces_the_former_text_at_once(rt: Runtime, profile: str) -> None:
    post = accept(rt, profile, body="Before", at=rt.now() + timedelta(hours=1))
    rt.write(posts.edit, post, Draft.change(body="Afterwards"), OWNER)
    assert post_list.load_page(rt.db, PostFilter(text="before")).total == 0
    assert post_list.load_page(rt.db, PostFilter(text="afterw")).total == 1


def test_an_empty_text_is_not_a_search(rt: Runtime, profile: str) -> None:
    accept(rt, profile)
    assert post_list.load_page(rt.db, PostFilter(text="")).total == 1
