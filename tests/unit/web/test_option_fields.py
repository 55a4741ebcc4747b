"""Options as fields of a form, and what comes back from them."""

from typing import Any
from urllib.parse import urlencode

import pytest

from socialpub.accounts import choices
from socialpub.accounts.choices import NetworkChoices, OptionChoice
from socialpub.core.errors import FieldError
from socialpub.core.settings.schema import ProvidersSection
from socialpub.providers.options import OptionType
from socialpub.providers.registry import OPTIONS, SPECIFIED, build
from socialpub.providers.tiktok.creator import CreatorInfo
from socialpub.web.dashboard.browser.forms import Form
from socialpub.web.dashboard.compose import option_fields


def form(network: str, **fields: str | list[str]) -> Form:
    pairs = [
        (f"options.{network}.{key}", one)
        for key, value in fields.items()
        for one in (value if isinstance(value, list) else [value])
    ]
    return Form.read(urlencode(pairs).encode())


def sent_back(network: str, shown: dict[str, Any], known: NetworkChoices | None = None) -> dict[str, str | list[str]]:
    """Return what a browser sends from an unchanged form."""
    return {
        key: ["", *one.ticked] if one.control == "boxes" else next(
            (choice.value for choice in one.choices if one.is_chosen(choice)), one.value
        )
        for key, one in option_fields.build_fields(network, shown, known=known).items()
    }  # fmt: skip


def test_every_option_and_every_value_has_a_name_for_people():
    for network in SPECIFIED:
        for option in OPTIONS[network]:
            assert option.name in option_fields.OPTION_LABELS
            for value in option.values:
                assert option_fields.value_label(value) != value
            assert "`" not in option_fields.field_hint(option)


@pytest.mark.parametrize(
    ("network", "stored"),
    [
        ("x", {"replySettings": "following", "madeWithAi": False, "paidPartnership": True, "quotePostId": "123"}),
        ("tiktok", {"mode": "draft", "privacyLevel": "SELF_ONLY", "disableComment": False, "photoCoverIndex": 0}),
        ("pinterest", {"boardId": "5001", "title": "A <b> & c", "aiDisclosures": ["AI_MODIFIED"], "link": "https://a.example/b"}),
        ("pinterest", {}),
    ],
)  # fmt: skip
def test_an_unchanged_form_returns_the_stored_options(network, stored):
    given = option_fields.read_options(form(network, **sent_back(network, stored)), network)
    assert given == stored
    provider = build(ProvidersSection())[network]
    assert provider.read_options(given) == (stored, [])


def test_what_x_has_closed_is_offered_nowhere_and_shown_where_it_is_set():
    closed = {"quotePostId", "communityId", "shareWithFollowers"}
    assert closed == {option.name for option in OPTIONS["x"] if option.closed}
    assert closed.isdisjoint(option_fields.build_fields("x", {"shareWithFollowers": False}))
    assert option_fields.build_fields("x", {"communityId": "7"})["communityId"].value == "7"
    assert option_fields.read_options(form("x", communityId="7"), "x") == {"communityId": "7"}


def test_blank_is_not_given_and_false_is_a_word_of_its_own():
    assert option_fields.read_options(form("tiktok", disableComment=""), "tiktok") == {}
    assert option_fields.read_options(form("tiktok", disableComment="false"), "tiktok") == {"disableComment": False}
    assert option_fields.read_options(form("x"), "tiktok") == {}
    fields = option_fields.build_fields("tiktok", {}, stored={"disableComment": False}, blank="Profile default")
    assert [one.label for one in fields["disableComment"].choices] == [
        "Profile default: allowed",
        "Allowed",
        "Not allowed",
    ]
    assert fields["disableDuet"].choices[0].label == "Default: not allowed"
    assert fields["privacyLevel"].choices[0] == OptionChoice("", "Not set"), "the owner must choose the level"


def test_a_box_says_what_the_hidden_field_before_it_does_not():
    assert option_fields.read_options(form("tiktok", disableComment=["true", "false"]), "tiktok") == {
        "disableComment": False
    }
    assert option_fields.read_options(form("tiktok", disableComment=["true"]), "tiktok") == {"disableComment": True}
    boxes = form("pinterest", aiDisclosures=["", "AI_MODIFIED", "SYNTHETIC_PERFORMER"])
    assert option_fields.read_options(boxes, "pinterest") == {"aiDisclosures": ["AI_MODIFIED", "SYNTHETIC_PERFORMER"]}
    assert option_fields.read_options(form("pinterest", aiDisclosures=[""]), "pinterest") == {}


def test_languages_are_one_field_with_commas():
    assert option_fields.read_options(form("bluesky", languages=" de, pt-BR ,"), "bluesky") == {
        "languages": ["de", "pt-BR"]
    }
    assert option_fields.read_options(form("bluesky", languages=" "), "bluesky") == {}
    field = option_fields.build_fields("bluesky", {"languages": ["de", "pt-BR"]})["languages"]
    assert (field.control, field.value) == ("text", "de, pt-BR")
    untouched = sent_back("bluesky", {"languages": ["de", "pt-BR"]}, NetworkChoices())
    assert option_fields.read_options(form("bluesky", **untouched), "bluesky") == {"languages": ["de", "pt-BR"]}
    stored = option_fields.build_fields("bluesky", {}, stored={"languages": ["de"]})
    assert stored["languages"].placeholder == "de"


@pytest.mark.parametrize(
    ("network", "key", "typed", "said"),
    [
        ("tiktok", "photoCoverIndex", "first", 'Cover photo (first is 0) must be a whole number, not "first".'),
        ("tiktok", "photoCoverIndex", "9" * 30, "Cover photo (first is 0) must be"),
        ("tiktok", "photoCoverIndex", "-1", "Cover photo (first is 0) must be at least 0"),
        ("tiktok", "disableDuet", "maybe", "Duets must be true or false"),
        ("x", "replySettings", "no-one", "Who may reply must be one of"),
        ("pinterest", "boardId", "Recipes", "Board must be a string of digits"),
        ("pinterest", "dominantColor", "red", "Dominant color must be a color"),
        ("pinterest", "aiDisclosures", "EVERYTHING", "AI disclosure must contain only"),
    ],
)
def test_errors_appear_at_the_field_and_the_input_stays(network, key, typed, said):
    given = option_fields.read_options(form(network, **{key: typed}), network)
    provider = build(ProvidersSection())[network]
    _, problems = provider.read_options(given)
    errors = option_fields.errors_of(network, [FieldError(one.path, one.message) for one in problems])
    field = option_fields.build_fields(network, given, errors=errors)[key]
    assert (field.error or "").startswith(said)
    assert typed in (field.value, *field.ticked)


def test_a_section_counts_on_its_own_board_only():
    boards = [OptionChoice("5001", "Recipes"), OptionChoice("5002", "Prints")]
    known = NetworkChoices({"boardId": boards, "boardSectionId": [OptionChoice("5001/7001", "Recipes: Soups")]})
    stored = {"boardId": "5001", "boardSectionId": "7001"}
    untouched = sent_back("pinterest", stored, known)
    assert untouched["boardSectionId"] == "5001/7001"
    assert option_fields.read_options(form("pinterest", **untouched), "pinterest") == stored
    moved = form("pinterest", boardId="5002", boardSectionId="5001/7001")
    assert option_fields.read_options(moved, "pinterest") == {"boardId": "5002"}
    typed = form("pinterest", boardId="5002", boardSectionId="7009")
    assert option_fields.read_options(typed, "pinterest") == {"boardId": "5002", "boardSectionId": "7009"}


def test_options_that_the_account_turns_off_are_locked_with_the_reason():
    known = choices.creator_choices(CreatorInfo("Ada", "ada", None, (), ("comment", "stitch"), None))
    fields = option_fields.build_fields("tiktok", {}, known=known)
    assert fields["disableComment"].locked == "The account's settings turn comments off."
    assert fields["disableDuet"].locked is None
    assert fields["disableStitch"].locked == "The account's settings turn stitches off."


def test_a_choice_that_the_network_no_longer_offers_is_shown_and_not_replaced():
    known = NetworkChoices({"privacyLevel": [OptionChoice("SELF_ONLY", "Only me")]}, {"disableDuet": "Off."})
    fields = option_fields.build_fields("tiktok", {"privacyLevel": "PUBLIC_TO_EVERYONE"}, known=known)
    assert [one.label for one in fields["privacyLevel"].choices] == [
        "Not set", "Only me", "Everyone (not available now)",
    ]  # fmt: skip
    assert [one.value for one in fields["privacyLevel"].choices if fields["privacyLevel"].is_chosen(one)] == [
        "PUBLIC_TO_EVERYONE"
    ]
    assert fields["disableDuet"].locked == "Off."


def test_every_type_of_option_has_a_control():
    known = {one.type for table in OPTIONS.values() for one in table}
    assert known == set(OptionType), "a type that no table has is one that no form has shown"
    for network in SPECIFIED:
        for one in option_fields.build_fields(network, {}).values():
            assert one.control in ("select", "boxes", "text", "number", "url")
