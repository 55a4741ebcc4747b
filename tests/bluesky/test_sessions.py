"""Sessions: they are connected once, renewed in time, and their end is reported once."""

import pytest

from socialpub.accounts import profiles, upkeep
from socialpub.core.errors import OperatorError
from socialpub.db.states import State
from tests.bluesky.front import drop_after
from tests.bluesky.stories import CREATE_SESSION, DELETE_SESSION, HOUR, PUT, REFRESH_SESSION, Story
from tests.support.drain import DAY


def test_a_post_after_the_end_of_the_access_token_renews_the_session(story: Story) -> None:
    assert story.profile
    story.clock.forward(7300)
    story.assert_published_once(story.publish("Hello"))
    assert len(story.front.calls_of(REFRESH_SESSION)) == 1
    assert len(story.front.calls_of(CREATE_SESSION)) == 1
    assert story.profile_row()["status"] == "active"


def test_a_renewal_whose_response_is_lost_is_repeated(story: Story) -> None:
    assert story.profile
    story.clock.forward(7300)
    story.front.next(REFRESH_SESSION, drop_after)
    story.assert_published_once(story.publish("Hello"))
    assert [call.status for call in story.front.calls_of(REFRESH_SESSION)] == [200, 200]


def test_a_session_of_months_ago_is_reported_and_the_post_goes_out_after_a_new_sign_in(story: Story) -> None:
    assert story.profile
    story.clock.forward(91 * DAY)
    post = story.accept("Hello")
    story.drain(HOUR)
    assert story.records() == []
    assert story.outcome(post)[0] is State.QUEUED
    assert story.profile_row()["status"] == "reauthRequired"
    assert len(story.front.calls_of(REFRESH_SESSION)) == 1

    story.connect(story.account)
    story.drain()
    story.assert_published_once(post)


def test_a_revoked_app_password_ends_the_session_with_its_access_token(story: Story) -> None:
    assert story.profile
    story.server.revoke_app_password(story.account)
    first = story.publish("While the access token lives")
    story.assert_published_once(first)

    story.clock.forward(7300)
    second = story.accept("Afterwards")
    story.drain(HOUR)
    assert story.outcome(second)[0] is State.QUEUED
    assert story.profile_row()["status"] == "reauthRequired"
    story.assert_published_once(first)
    assert len(story.front.calls_of(CREATE_SESSION)) == 1, "the password is not stored"
    assert len(story.front.calls_of(REFRESH_SESSION)) == 1


WRONG = {
    "the password": {"password": "aaaa-bbbb-cccc-dddd"},
    "the handle": {"handle": "nobody.test"},
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_sign_in_is_refused_and_stores_nothing(story: Story, what: str) -> None:
    with pytest.raises(OperatorError) as refused:
        story.connect(story.account, **WRONG[what])
    assert WRONG["the password"]["password"] not in str(refused.value)
    assert story.profile_row() is None


def test_the_main_password_is_refused_and_its_session_is_ended(story: Story) -> None:
    with pytest.raises(OperatorError, match="main password") as refused:
        story.connect(story.account, password=story.account.password)
    assert "App passwords" in str(refused.value.hint)
    assert story.profile_row() is None
    assert [call.status for call in story.front.calls_of(DELETE_SESSION)] == [200]


@pytest.mark.parametrize("written", ["@{}", "{} ", " {}", "\u200e{}\u200b"])
def test_a_handle_is_understood_as_people_write_it(story: Story, written: str) -> None:
    story.connect(story.account, handle=written.format(story.account.handle.upper()))
    assert story.profile_row()["username"] == story.account.handle


def test_a_profile_has_the_did_and_the_server_of_its_account(story: Story) -> None:
    assert story.profile
    row = story.profile_row()
    assert row["account_id"] == story.account.did
    assert story.server.url in row["facts"]
    assert "104857600" in row["facts"]


def test_a_new_handle_appears_with_the_next_renewal(story: Story) -> None:
    first = story.publish("Before")
    story.server.change_handle(story.account, "renamed")
    second = story.publish("After")
    story.clock.forward(7300)
    third = story.publish("Renewed")
    story.assert_published_once(first, second, third)
    assert story.profile_row()["username"] == story.account.handle


def test_a_disconnected_profile_signs_out_with_its_newest_token(story: Story) -> None:
    story.publish("Hello")
    story.clock.forward(7300)
    story.publish("Again")
    story.rt.write(profiles.disconnect, story.profile)
    assert upkeep.revoke_disconnected(story.rt) == 1
    (call,) = story.front.calls_of(DELETE_SESSION)
    assert call.status == 200
    assert story.server.call(REFRESH_SESSION, b"", token=call.token).status == 400


def test_a_deactivated_account_keeps_its_posts_until_it_is_active_again(story: Story) -> None:
    assert story.profile
    story.server.deactivate(story.account)
    post = story.accept("Hello")
    story.drain(2 * HOUR)
    assert story.outcome(post)[0] is State.QUEUED
    assert len(story.front.calls_of(PUT)) < 15
    story.server.activate(story.account)
    story.drain()
    story.assert_published_once(post)


def test_an_account_that_is_taken_down_is_not_asked_again_and_again(story: Story) -> None:
    assert story.profile
    story.server.take_down(story.account)
    story.accept("Hello")
    story.drain(DAY)
    assert len(story.front.calls_of(PUT)) < 5
    assert len(story.front.calls_of(CREATE_SESSION)) == 1
