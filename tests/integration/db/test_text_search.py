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
from tests.support.appliance import accept, add_profile
from tests.support.hand_clock import HandClock
from tests.support.select import select_value

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


def test_the_text_filter_combines_with_other_filters_and_pages(rt: Runtime, profile: str, clock: HandClock) -> None:
    other = add_profile(rt, "tiktok", account_id="other")
    made = []
    for number in range(6):
        at = rt.now() + timedelta(hours=1 + number) if number % 2 else None
        made.append(accept(rt, profile, body=f"Bread number {number}", at=at))
        clock.forward(1)
    accept(rt, profile, body="Cake", at=rt.now() + timedelta(hours=1))
    shared = accept(rt, profile, body="Bread for all", at=rt.now() + timedelta(hours=1))
    audience = int(select_value(rt.db, "SELECT audience_id FROM post WHERE id = ?", (made[0],)))
    unknown = audience + 1

    def ids(**filters: object) -> tuple[list[str], int]:
        page = post_list.load_page(rt.db, PostFilter(text="bread", **filters))  # type: ignore[arg-type]
        return [one.split(b'"')[3].decode() for one in page.shown], page.total

    assert ids() == ([shared, *made[::-1]], 7)
    assert ids(per_page=2, page=1) == ([made[4], made[3]], 7)
    assert ids(per_page=2, page=9) == ([], 7)
    assert ids(status="scheduled") == ([shared, made[5], made[3], made[1]], 4)
    assert ids(status="scheduled", audiences=(audience,))[1] == 4
    assert ids(audiences=(unknown,)) == ([], 0)
    assert ids(outcome="pending", profiles=(profile,))[1] == 7
    assert ids(outcome="pending", profiles=(other,))[1] == 0
    assert ids(outcome="published")[1] == 0
    after = str(select_value(rt.db, "SELECT scheduled_at FROM post WHERE id = ?", (made[3],)))
    assert ids(scheduled_after=after)[0] == [made[5], made[3]]


def test_many_matching_posts_have_the_same_pages_as_few(
    rt: Runtime, profile: str, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(7):
        accept(rt, profile, body=f"{'odd' if number % 2 else 'even'} bread {number}")
        clock.forward(1)

    def pages() -> list[tuple[list[bytes], int]]:
        queries = [PostFilter(text="ODD", page=page, per_page=2, status="pending") for page in range(3)]
        return [(list(page.shown), page.total) for page in (post_list.load_page(rt.db, one) for one in queries)]

    few = pages()
    assert [(len(shown), total) for shown, total in few] == [(2, 3), (1, 3), (0, 3)]
    monkeypatch.setattr(post_list, "_FEW", 0)
    assert pages() == few


def test_a_changed_text_replaces_the_former_text_at_once(rt: Runtime, profile: str) -> None:
    post = accept(rt, profile, body="Before", at=rt.now() + timedelta(hours=1))
    rt.write(posts.edit, post, Draft.change(body="Afterwards"), OWNER)
    assert post_list.load_page(rt.db, PostFilter(text="before")).total == 0
    assert post_list.load_page(rt.db, PostFilter(text="afterw")).total == 1


def test_an_empty_text_is_not_a_search(rt: Runtime, profile: str) -> None:
    accept(rt, profile)
    assert post_list.load_page(rt.db, PostFilter(text="")).total == 1
