"""The owner approves a post together with its link card, and this card is sent, or none (contract 10.3.2)."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from socialpub.accounts import profiles
from socialpub.accounts.api_keys import Caller
from socialpub.core.errors import Conflict
from socialpub.db.models import DeliveryRow
from socialpub.providers.base import Fetched, NotFetched
from socialpub.providers.bluesky import Bluesky
from socialpub.publishing.media import renditions
from socialpub.publishing.media.link_pages import LinkFetcher
from socialpub.publishing.posts import approvals, details, posts
from socialpub.publishing.posts.drafts import Draft, DraftMedia
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.samples import media as samples
from tests.support.appliance import OWNER, accept, approve, version_of
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.rows import artifact
from tests.support.sandbox_http import connect_bluesky, providers_of_the_sandbox
from tests.support.select import select_value

AGENT = Caller("agent", "write", name="claude", approval=True)
LINK, OTHER, COVER = "https://example.com/a", "https://example.com/b", "https://example.com/cover.jpg"
Web = dict[str, bytes]


@pytest.fixture
def appliance_options(sandbox_options: dict[str, Any]) -> dict[str, Any]:
    networks = providers_of_the_sandbox(bluesky=True)
    return {**sandbox_options, "networks": networks, "base_url": "http://testserver"}


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Web:
    """The public web. A page that is missing answers 404."""
    found = {LINK: page("Recipes"), OTHER: page("Other"), COVER: samples.jpeg(tmp_path / "a.jpg").read_bytes()}

    def receive(_: LinkFetcher, what: str, url: str, max_bytes: int, *, whole: bool) -> Fetched:
        if url not in found:
            raise NotFetched(f"{what} answered 404 Not Found.")
        return Fetched(url, "text/html", "utf-8", found[url])

    monkeypatch.setattr(LinkFetcher, "_receive", receive)
    return found


def page(title: str, image: bool = False) -> bytes:
    cover = f"<meta property=og:image content={COVER}>" if image else ""
    return f"<title>{title}</title><meta name=description content='About {title}'>{cover}".encode()


@pytest.fixture
def bluesky(rt: Runtime, world: World) -> str:
    return connect_bluesky(rt, world)


@pytest.fixture
def asked(rt: Runtime, bluesky: str) -> Callable[..., str]:
    """A post of the agent, in an hour."""

    def create(text: str = f"Read {LINK}", hours: float = 1, **more: Any) -> str:
        return rt.write(posts.create, Draft(text, rt.now() + timedelta(hours=hours), (bluesky,), **more), AGENT)

    return create


def edit(rt: Runtime, post: str, caller: Caller, **values: Any) -> None:
    rt.write(posts.edit, post, Draft.change(**values), caller)


def card_of(world: World) -> dict[str, Any] | None:
    [post] = world.bluesky.posts
    card = post.value.get("embed", {}).get("external")
    return card and {"title": card["title"], "image": "thumb" in card}


def publish(rt: Runtime, clock: HandClock, world: World) -> dict[str, Any] | None:
    clock.forward(2 * 3600)
    drain(rt, clock)
    return card_of(world)


def test_nothing_is_approved_before_the_owner_can_see_the_card(owner, rt, web, asked):
    post = asked()
    page_ = owner.open(f"/posts/{post}")
    assert f"The page {LINK} is being read." in page_.text
    assert not page_.has_button("Approve") and "Publish now" not in page_.links() and "Stop" in page_.links()
    with pytest.raises(Conflict, match="The link card is being read"):
        approve(rt, post)
    unread, fragment = version_of(rt, post), f"/posts/{post}?card=on"
    assert f'{fragment}"' in page_.html
    assert "hx-refresh" not in owner.ask("GET", fragment, headers={"hx-request": "true"}).headers
    approvals.read_cards(rt)
    assert owner.ask("GET", fragment, headers={"hx-request": "true"}).headers["hx-refresh"] == "true"
    page_ = owner.open(f"/posts/{post}")
    assert "Recipes" in page_.text and "About Recipes" in page_.text and page_.has_button("Approve")
    with pytest.raises(Conflict, match="changed after you read it"):
        rt.write(posts.approve, post, unread)
    assert owner.press("Approve").role("status").startswith("Approved.")


def test_the_approved_card_is_sent_although_the_page_has_changed(owner, rt, world, clock, web, asked):
    web[LINK] = page("Recipes", image=True)
    post = asked()
    approvals.read_cards(rt)
    images = [one.attributes for one in owner.open(f"/posts/{post}").root.all("img")]
    [source] = [one["src"] or "" for one in images if one.get("alt") == "The image of the link card"]
    assert owner.ask("GET", source).headers["content-type"] == "image/jpeg"
    approve(rt, post)
    web.clear()
    web[LINK] = page("Buy my coin")
    edit(rt, post, OWNER, scheduled_at=rt.now() + timedelta(minutes=5))
    assert publish(rt, clock, world) == {"title": "Recipes", "image": True}
    assert owner.open(f"/posts/{post}").status == 200


@pytest.mark.parametrize("page_now", [None, page("Now it works")])
def test_a_page_that_could_not_be_read_gives_no_card(owner, rt, world, clock, web, asked, page_now):
    del web[LINK]
    post = asked()
    approvals.read_cards(rt)
    assert "The post has no link card. The page answered 404 Not Found." in owner.open(f"/posts/{post}").text
    owner.press("Approve")
    web |= {} if page_now is None else {LINK: page_now}
    assert publish(rt, clock, world) is None


def test_a_reader_that_fails_unexpectedly_blocks_neither_this_post_nor_the_next(rt, web, asked, monkeypatch):
    read, broken, whole = Bluesky.read_card, asked(), asked(f"Read {OTHER}")

    def fail(link: str, *more: Any) -> Any:
        if link == LINK:
            raise RuntimeError
        return read(link, *more)

    monkeypatch.setattr(Bluesky, "read_card", staticmethod(fail))
    approvals.read_cards(rt)
    assert approve(rt, broken) and approve(rt, whole)


def test_without_its_image_the_approved_card_is_left_out(rt, world, clock, web, asked):
    web[LINK] = page("Recipes", image=True)
    post = asked()
    approvals.read_cards(rt)
    approve(rt, post)
    renditions.forget(rt, select_value(rt.db, "SELECT id FROM delivery"))  # after a restore
    assert publish(rt, clock, world) is None
    assert "Its file is missing." in select_value(rt.db, "SELECT message FROM attempt ORDER BY n DESC")


def test_another_link_is_read_before_it_can_be_approved(rt, world, clock, web, asked):
    post = asked()
    approvals.read_cards(rt)
    first = version_of(rt, post)
    edit(rt, post, AGENT, body=f"Read {OTHER}")
    with pytest.raises(Conflict, match="being read"):
        rt.write(posts.approve, post, first)
    approvals.read_cards(rt)
    edit(rt, post, AGENT, body=f"Do read {OTHER}")
    web[OTHER] = page("Read again")
    approvals.read_cards(rt)
    approve(rt, post)
    assert publish(rt, clock, world) == {"title": "Other", "image": False}


def test_a_page_that_arrives_after_an_edit_is_not_the_card_of_the_new_link(rt, web, asked, monkeypatch):
    post, read = asked(), Bluesky.read_card

    def edit_first(link: str, *more: Any) -> Any:
        monkeypatch.setattr(Bluesky, "read_card", staticmethod(read))
        edit(rt, post, AGENT, body=f"Read {OTHER}")
        return read(link, *more)

    monkeypatch.setattr(Bluesky, "read_card", staticmethod(edit_first))
    approvals.read_cards(rt)
    with pytest.raises(Conflict, match="being read"):
        approve(rt, post)
    approvals.read_cards(rt)
    [one] = (details.load_details(rt, rt.db, post) or pytest.fail()).deliveries
    assert one.link_card and one.link_card["title"] == "Other"


def test_a_post_without_a_card_needs_no_worker(rt, web, asked):
    assert approve(rt, asked("No link"))
    assert approve(rt, asked(media=(DraftMedia(artifact(rt)),)))
    assert approve(rt, asked(options={"bluesky": {"linkCard": False}}))
    edited = asked()
    edit(rt, edited, AGENT, body="The link is gone")
    assert approve(rt, edited)


def test_the_posts_of_other_keys_are_not_read_before_they_are_due(rt, world, clock, web, bluesky, asked):
    accept(rt, bluesky, body=f"Read {LINK}", at=rt.now() + timedelta(hours=1))
    approvals.read_cards(rt)
    assert select_value(rt.db, "SELECT memo FROM delivery") == "{}"
    web[LINK] = page("Newer")
    assert publish(rt, clock, world) == {"title": "Newer", "image": False}


def test_the_version_covers_everything_that_will_be_public(rt, bluesky, asked):
    images = [DraftMedia(artifact(rt), "A cat"), DraftMedia(artifact(rt))]
    post = asked("Hello", media=tuple(images))
    versions = [version_of(rt, post)]
    for values in (
        {"body": "Hello!"},
        {"media": tuple(images[::-1])},
        {"media": (DraftMedia(images[0].artifact_id, "A dog"), images[1])},
        {"options": {"bluesky": {"languages": ["de"]}}},
        {"scheduled_at": rt.now() + timedelta(hours=3)},
    ):
        edit(rt, post, AGENT, **values)
        versions.append(version_of(rt, post))
    rt.write(profiles.rename, bluesky, "Another name")
    versions.append(version_of(rt, post))
    rt.db.write(lambda tx: tx.execute_sql("UPDATE delivery SET reply_to = 'another post'"))
    versions.append(version_of(rt, post))
    memo = {"link_card": {"uri": LINK, "title": "A card"}}
    delivery_id = select_value(rt.db, "SELECT id FROM delivery")
    rt.db.write(lambda tx: tx.update(DeliveryRow, delivery_id, memo=json.dumps(memo)))
    versions.append(version_of(rt, post))
    assert len(set(versions)) == len(versions)
    assert version_of(rt, post) == versions[-1]
