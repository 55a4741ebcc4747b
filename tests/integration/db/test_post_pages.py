"""Every page of every filter has the matching posts in order, on each way to a page, and reads indexes."""

import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import pytest

from socialpub.accounts.api_keys import OWNER, Caller
from socialpub.db.connection import Database
from socialpub.db.queries import post_list
from socialpub.db.queries.post_list import PostFilter, PostPage, Totals
from socialpub.db.states import OUTCOME_LETTERS
from socialpub.publishing.posts import posts
from socialpub.runtime import Runtime
from tests.support.query_plans import plans_of

POSTS = 90
MEMBERS = {1: ["a"], 2: ["b"], 3: ["a", "b"], 4: ["c"], 5: ["a", "c", "d"], 6: ["d"]}
NETWORKS = {"a": "x", "b": "x", "c": "tiktok", "d": "pinterest"}
PER_PAGE = 8
WINDOWS: list[dict[str, object]] = [
    {},
    {"scheduled_after": "2026-10-03T12:00:00.000Z"},
    {"scheduled_before": "2026-10-04T12:00:00.000Z"},
    {"scheduled_after": "2026-10-02T00:00:00.000Z", "scheduled_before": "2026-10-06T00:00:00.000Z"},
    {"scheduled_after": "2026-10-02T00:00:00.000Z", "or_accepted": True},
]


@dataclass(frozen=True)
class StockPost:
    id: str
    created_at: str
    status: str
    audience: int
    outcomes: str
    scheduled_at: str | None
    body: str


@pytest.fixture(scope="module")
def stock() -> list[StockPost]:
    """Posts of six days, newest first. Some have the same instant. Audience 6 has the oldest posts only."""
    draw = random.Random(3)
    posts = []
    for number in range(POSTS):
        audience = 6 if number < 10 else draw.choice([1, 1, 1, 2, 3, 4, 5])
        status = draw.choice(["settled"] * 6 + ["scheduled", "pending", "canceled"])
        letters = {"settled": "pppfu", "scheduled": ".", "pending": ".p", "canceled": "c"}[status]
        created = f"2026-10-{1 + number // 17:02}T{number % 17 // 2:02}:00:00.000Z"
        scheduled = f"2026-10-{draw.randint(1, 9):02}T{draw.randint(0, 23):02}:00:00.000Z"
        outcomes = "".join(draw.choice(letters) for _ in MEMBERS[audience])
        at = scheduled if status == "scheduled" or draw.random() < 0.4 else None
        body = draw.choice(["Bread", "cake"])
        posts.append(StockPost(f"{draw.getrandbits(40):010x}", created, status, audience, outcomes, at, body))
    return sorted(posts, key=lambda post: (post.created_at, post.id), reverse=True)


@pytest.fixture
def stocked(rt: Runtime, stock: list[StockPost]) -> Runtime:
    rt.db.write(lambda tx: insert(tx, stock))
    return rt


def insert(tx: Database, stock: Sequence[StockPost]) -> None:
    tx.connection().executemany(
        "INSERT INTO audience VALUES (?, ?)", [(number, json.dumps(names)) for number, names in MEMBERS.items()]
    )
    members = [
        (audience, name, NETWORKS[name], at) for audience, names in MEMBERS.items() for at, name in enumerate(names)
    ]
    tx.connection().executemany(
        "INSERT INTO audience_member (audience_id, profile_id, provider, position) VALUES (?, ?, ?, ?)", members
    )
    rows = [
        (post.id, post.status, post.created_at, post.created_at, post.audience, post.outcomes, post.scheduled_at,
         post.body)
        for post in stock
    ]  # fmt: skip
    tx.connection().executemany(
        "INSERT INTO post (id, status, created_at, updated_at, audience_id, outcomes, scheduled_at, body)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )


FILTERS = [
    PostFilter(audiences, status, outcome, profiles, providers, **window)  # type: ignore[arg-type]
    for audiences, status, (outcome, profiles, providers), window in product(
        (None, (1,), (6,), (3, 4, 6), tuple(MEMBERS), (77,)),
        (None, "settled", "scheduled", "canceled"),
        (
            (None, (), ()),
            ("published", (), ()),
            ("failed", (), ()),
            ("published", ("a", "c"), ()),
            ("unknown", (), ("x",)),
            ("published", ("b",), ("x", "tiktok")),
        ),
        WINDOWS,
    )
]


def expected(stock: Sequence[StockPost], query: PostFilter) -> list[str]:
    def matches(post: StockPost) -> bool:
        wanted = OUTCOME_LETTERS[query.outcome] if query.outcome else None
        has_outcome = wanted is None or any(
            letter == wanted
            and (not query.profiles or name in query.profiles)
            and (not query.providers or NETWORKS[name] in query.providers)
            for name, letter in zip(MEMBERS[post.audience], post.outcomes, strict=True)
        )
        at = post.scheduled_at or (post.created_at if query.or_accepted else None)
        in_time = not query.windowed or (
            at is not None and (query.scheduled_after or "") <= at <= (query.scheduled_before or "~")
        )
        return (
            has_outcome
            and in_time
            and (query.audiences is None or post.audience in query.audiences)
            and (query.status is None or post.status == query.status)
            and (query.text is None or query.text in post.body.lower())
        )

    return [post.id for post in stock if matches(post)]


def paged(rt: Runtime, query: PostFilter) -> tuple[list[str], set[int]]:
    """Return the posts of all pages, one after the other, and the totals of the pages."""
    ids, totals, number = list[str](), set[int](), 0
    while True:
        page = post_list.load_page(rt.db, replace(query, page=number, per_page=PER_PAGE))
        ids += [json.loads(post)["id"] for post in page.shown]
        totals.add(page.total)
        number += 1
        if len(page.shown) < PER_PAGE:
            beyond = post_list.load_page(rt.db, replace(query, page=number + 3, per_page=PER_PAGE))
            assert not beyond.shown
            return ids, totals | {beyond.total}


@pytest.mark.parametrize("few", [2000, 0, 10])
def test_every_page_of_every_filter_has_the_matching_posts_in_order(stocked, stock, monkeypatch, few):
    monkeypatch.setattr(post_list, "_FEW", few)
    found = 0
    for query in FILTERS:
        ids = expected(stock, query)
        assert paged(stocked, query) == (ids, {len(ids)}), query
        found += len(ids)
    assert found > 2000


@pytest.mark.parametrize("few", [2000, 0])
def test_pages_of_a_text_search_have_the_matching_posts_in_order(stocked, stock, monkeypatch, few):
    monkeypatch.setattr(post_list, "_FEW", few)
    for query in FILTERS[::7]:
        searched = replace(query, text="bread")
        ids = expected(stock, searched)
        assert paged(stocked, searched) == (ids, {len(ids)}), searched


# --- the decisions ---------------------------------------------------------------------------------------------------


def test_long_lists_are_read_in_a_thread(stocked, monkeypatch):
    def is_slow(query: PostFilter, is_counted: bool = False) -> bool:
        return post_list.is_slow(stocked.db, query, is_counted)

    assert not is_slow(PostFilter(text="bread", page=10**6))
    monkeypatch.setattr(post_list, "_MANY", POSTS - 1)
    assert is_slow(PostFilter())
    assert not is_slow(PostFilter(outcome="failed", page=99), is_counted=True)
    assert is_slow(PostFilter(page=101), is_counted=True)
    assert is_slow(PostFilter(text="bread"), is_counted=True)
    assert is_slow(PostFilter(scheduled_after="2026-10-03T12:00:00.000Z"), is_counted=True)


def test_a_total_is_counted_once_until_a_post_is_written(stocked, stock):
    def counts(query: PostFilter) -> bool:
        async def load() -> int:
            return (await posts.load_page(stocked, OWNER, query)).total

        loaded = list[int]()
        plans = plans_of(stocked.db, lambda _: loaded.append(asyncio.run(load())))
        assert loaded == [len(expected(stock, query))]
        return any("count(*)" in plan.sql.lower() for plan in plans)

    failed = PostFilter(outcome="failed", per_page=2)
    assert counts(failed)
    assert not counts(failed)
    assert not counts(replace(failed, page=1))
    assert counts(PostFilter(outcome="published"))
    stocked.db.write(lambda tx: tx.execute_sql("UPDATE post SET body = 'x' WHERE rowid = 1").rowcount)
    assert counts(failed)


def test_a_counted_list_is_read_by_one_statement(stocked, stock):
    query = PostFilter(outcome="published", profiles=("a", "c"), providers=("x",))
    pages = list[PostPage]()

    async def load() -> None:
        pages.append(await posts.load_page(stocked, Caller("key", "read", frozenset({"x", "tiktok"})), query))

    plans = [plans_of(stocked.db, lambda _: asyncio.run(load())) for _ in range(2)]
    assert (len(plans[0]) > 1, len(plans[1])) == (True, 1)
    assert pages[0] == pages[1] and pages[0].total


def test_a_total_from_before_a_commit_is_not_kept():
    totals = Totals()
    before = totals.of_version(1)
    assert totals.of_version(1) is before
    totals.of_version(2)  # another request saw a commit meanwhile
    before[PostFilter()] = None, 10
    assert not totals.of_version(2)


# --- the plans -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("few", [2000, 0])
def test_every_filter_reads_indexes(stocked, monkeypatch, few):
    monkeypatch.setattr(post_list, "_FEW", few)
    for query in FILTERS:
        query = replace(query, page=1, per_page=PER_PAGE)
        plans = plans_of(stocked.db, lambda db, query=query: post_list.load_page(db, query))  # type: ignore[misc]
        assert plans
        scans = [scan for plan in plans for scan in plan.scans if "COVERING INDEX post_newest" not in scan]
        assert not scans, (query, plans)


def test_posts_are_counted_without_reading_their_rows(stocked):
    for query in (query for query in FILTERS if not query.or_accepted):
        plans = plans_of(stocked.db, lambda db, query=query: post_list.load_page(db, query))  # type: ignore[misc]
        for plan in (plan for plan in plans if "count(*)" in plan.sql.lower()):
            of_posts = [step for step in plan.steps if step.startswith(("SEARCH post ", "SCAN post "))]
            assert of_posts and all("COVERING INDEX" in step for step in of_posts), (query, plan)


def test_the_text_search_alone_scans_the_posts(stocked):
    plans = plans_of(stocked.db, lambda db: post_list.load_page(db, PostFilter(text="bread")))
    assert [plan.scans for plan in plans if plan.scans] == [["SCAN post"]]
