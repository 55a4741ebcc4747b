"""Profiles with the same label are told apart wherever profiles are listed; a unique label stays as it is."""

from socialpub.accounts import profiles
from socialpub.runtime import Runtime
from tests.support.appliance import accept, add_profile
from tests.support.dashboard_browser import DashboardBrowser, Page


def add_named(rt: Runtime, *accounts: tuple[str, str, str | None]) -> None:
    for number, (provider, name, username) in enumerate(accounts):
        add_profile(rt, provider, account_id=f"account-{number}", name=name, username=username)


def names_of(page: Page, field_name: str) -> list[str]:
    boxes = [one for one in page.root.all("input") if one.attributes.get("name") == field_name]
    around = [box.within("label") for box in boxes]
    assert all(around)
    return [one.text for one in around if one is not None]


def test_in_the_composer_a_unique_label_stays_and_others_name_network_and_handle(
    owner: DashboardBrowser, rt: Runtime
) -> None:
    add_named(rt, ("x", "Demo", "one"), ("x", "demo", "two"), ("tiktok", "Demo", None), ("pinterest", "Shop", "shop"))
    assert names_of(owner.open("/compose"), "profiles") == ["Demo (X @one)", "demo (X @two)", "Demo (TikTok)", "Shop"]


def test_filters_and_keys_show_the_network_once_and_the_handle_where_it_is_needed(
    owner: DashboardBrowser, rt: Runtime
) -> None:
    add_named(rt, ("x", "Demo", "one"), ("x", "Demo", "two"), ("pinterest", "Demo", "three"))
    assert names_of(owner.open("/posts"), "profileIds") == [
        "X: Demo (@one)",
        "X: Demo (@two)",
        "Pinterest: Demo",
    ]
    assert names_of(owner.open("/keys"), "profiles") == ["Demo (@one) (X)", "Demo (@two) (X)", "Demo (Pinterest)"]
    options = [one.text for one in owner.open("/log").field("Profile").all("option")]
    assert options[1:] == ["X: Demo (@one)", "X: Demo (@two)", "Pinterest: Demo"]


def test_lists_show_the_handle_of_twins_and_a_former_label_as_it_was(owner: DashboardBrowser, rt: Runtime) -> None:
    add_named(rt, ("x", "Demo", "one"), ("x", "Demo", "two"))
    one, two = (row["id"] for row in rt.reader.all("SELECT id FROM profile ORDER BY username"))
    accept(rt, one, body="First")
    accept(rt, two, body="Second")
    page = owner.open("/posts")
    assert "X “Demo (@one)” Not out yet" in page.text
    assert "X “Demo (@two)” Not out yet" in page.text
    assert "Demo (@one)" in owner.open("/log?type=pending").text
    rt.write(profiles.rename, two, "Studio")
    assert "X “Demo” Not out yet" in owner.open("/posts").text


def test_a_disconnected_profile_makes_no_label_ambiguous(owner: DashboardBrowser, rt: Runtime) -> None:
    add_named(rt, ("x", "Demo", "one"), ("tiktok", "Demo", "two"))
    rt.db.write(lambda tx: tx.execute("UPDATE profile SET status = 'disconnected' WHERE provider = 'tiktok'"))
    assert names_of(owner.open("/compose"), "profiles") == ["Demo"]
    assert names_of(owner.open("/posts"), "profileIds") == ["X: Demo", "TikTok: Demo (disconnected)"]
