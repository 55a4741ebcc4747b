"""What the script of Compose is told while somebody writes: the server's own counters, problems and previews."""

from pathlib import Path
from urllib.parse import urlencode

from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.samples import media
from tests.support.dashboard_browser import DashboardBrowser, Page
from tests.support.sandbox_http import artifact, connect_pinterest, connect_x

UNKNOWN = "01a12f57-1a80-7074-9d08-074dfc0027ba"


def check(owner: DashboardBrowser, *fields: tuple[str, str], token: str | None = None) -> Page:
    if token is None:
        owner.open("/compose")
        token = next(
            one.attributes["value"] for one in owner.page.root.all("input") if one.attributes["name"] == "csrf"
        )
    body = urlencode([("csrf", token), ("when", "now"), *fields]).encode()
    return Page(owner.ask("POST", "/compose/check", body), "http://testserver/compose/check")


def part(page: Page, name: str) -> str:
    found = page.root_by_id(name)
    assert found is not None
    return found.text


def test_each_network_counts_in_its_own_way_and_shows_the_post(
    owner: DashboardBrowser, rt: Runtime, world: World, tmp_path: Path
) -> None:
    x, pins = connect_x(rt, world), connect_pinterest(rt, world)
    photo = artifact(rt, media.jpeg(tmp_path / "a.jpg"), "image/jpeg")
    page = check(
        owner,
        ("body", "<i>漢字</i> https://example.com/"),
        ("profiles", x),
        ("profiles", pins),
        ("artifact", photo),
        (f"alt.{photo}", 'Two "signs"'),
        ("options.pinterest.title", "T" * 101),
    )
    assert (
        part(page, "counters")
        == "X 35 of 280 Pinterest, description 30 of 800 Pinterest, title 101 of 100 – 1 too many"
    )
    assert "<i>漢字</i> example.com/" in part(page, "preview")
    assert [one.attributes["alt"] for one in page.root.all("img")] == ['Two "signs"'] * 2
    assert not [one for one in page.root.all("a") if not one.attributes["href"].startswith("#")]
    said = part(page, "found")
    assert "Board" in said
    assert "Title" in said
    assert "boardId" not in said


def test_what_is_wrong_with_the_form_itself_is_told_and_the_rest_is_shown(
    owner: DashboardBrowser, rt: Runtime, world: World
) -> None:
    x = connect_x(rt, world)
    page = check(
        owner, ("body", "Hello"), ("profiles", x), ("profiles", UNKNOWN), ("artifact", UNKNOWN), ("when", "at")
    )
    said = part(page, "found")
    assert "choose a date and a time" in said.lower()
    assert "Profile : Is not here any more; choose another one." in said
    assert "Media 1 : Is not here any more; remove it and add the file again." in said
    assert part(page, "counters") == "X 5 of 280"


def test_an_empty_form_is_no_problem_yet(owner: DashboardBrowser, rt: Runtime, world: World) -> None:
    x = connect_x(rt, world)
    assert part(check(owner, ("body", "Hello")), "found") == ""
    page = check(owner, ("profiles", x), ("body", " "))
    assert (part(page, "found"), part(page, "counters")) == ("", "X 0 of 280")


def test_a_text_of_any_length_is_counted_but_only_what_fits_is_shown(
    owner: DashboardBrowser, rt: Runtime, world: World
) -> None:
    x = connect_x(rt, world)
    page = check(owner, ("body", "a.com " * 16_000), ("profiles", x))
    assert "383,999 of 280" in part(page, "counters")
    assert len(page.html) < 20_000


def test_nothing_is_told_without_the_token(owner: DashboardBrowser, rt: Runtime) -> None:
    assert check(owner, ("body", "Hello"), token="").status == 403
