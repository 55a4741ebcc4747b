"""Finding a post on Bluesky: by its own key, or by its content when a restored backup does not know the key."""

from datetime import timedelta
from typing import Any

import pytest

from socialpub.providers.base import CannotTell, Done, MediaFile, Memo, Readback
from socialpub.providers.bluesky.record import key_at
from socialpub.providers.responses import NoAnswer
from tests.support.scripted_calls import NOW, answer
from tests.unit.providers.bluesky.script import ADAPTER, DID, Script, image, job, refusal, run, stored

GET, LIST = "GET com.atproto.repo.getRecord", "GET com.atproto.repo.listRecords"
ABSENT = refusal(400, "RecordNotFound")
NOTHING = answer(200, {"records": []})


def record(key: str, text: str = "Hello", seconds: float = 0, **more: Any) -> dict[str, Any]:
    created = (NOW + timedelta(seconds=seconds)).isoformat()
    value = {"$type": "app.bsky.feed.post", "text": text, "createdAt": created, **more}
    return {"uri": f"at://{DID}/app.bsky.feed.post/{key}", "cid": "bafy", "value": value}


def listed(*records: Any, cursor: str | None = None) -> Any:
    return answer(200, {"records": list(records), **({"cursor": cursor} if cursor else {})})


def built() -> Memo:
    outcome = run("record", Script())
    assert isinstance(outcome, Done)
    return outcome.memo


def found(script: Script, text: str = "Hello", *media: MediaFile, **more: Any) -> list[str]:
    readback = ADAPTER.recover(job(script, text, *media, since=lambda: NOW, **more))
    assert isinstance(readback, Readback)
    return [(one.post_id or "").rpartition("/")[2] for one in readback.candidates]


def test_the_own_key_and_cid_are_certain():
    memo = built()
    script = Script(stored(memo))
    assert found(script, memo=memo) == [memo["record"]["key"]]
    assert script.asked == [GET]


def test_the_content_is_compared_when_the_key_has_nothing_of_ours():
    memo = built()
    for reply in (ABSENT, stored(memo, cid="another", value={"text": "Other"})):
        assert found(Script(reply, listed(record("a"))), memo=memo) == ["a"]
        assert found(Script(reply, NOTHING), memo=memo) == []


@pytest.mark.parametrize(
    "unclear",
    [
        refusal(400, "InvalidRequest", "Could not locate record"),
        refusal(403, "AccountNotFound"),
        refusal(500, "InternalServerError"),
        answer(404, b"<html>"),
        answer(200, b"<html>"),
    ],
)
def test_a_server_without_the_account_says_nothing_about_the_post(unclear):
    with pytest.raises(NoAnswer):
        found(Script(unclear), memo=built())
    with pytest.raises(NoAnswer):
        found(Script(unclear))


def test_only_the_same_text_reply_and_media_could_be_the_post():
    embed = {"$type": "app.bsky.embed.images", "images": [{}, {}]}
    reply = {"parent": {"uri": "at://parent"}, "root": {"uri": "at://root"}}
    page = listed(
        record("a"), record("b", "Other"), record("c", embed=embed), record("d", reply=reply), {"value": 1}, 7
    )
    assert found(Script(page)) == ["a"]
    assert found(Script(page), "Hello", image(0), image(1)) == ["c"]
    assert found(Script(page), "Hello", image(0)) == []
    assert found(Script(page), options={"replyToPostId": "p", "replyTo": "at://parent"}) == ["d"]
    assert found(Script(page), options={"replyToPostId": "p"}) == ["d"]
    assert found(Script(page), options={"replyToPostId": "p", "replyTo": "at://other"}) == []


def at(seconds: float) -> str:
    """The key of a record that was made then."""
    return key_at(NOW.timestamp() + seconds)


def test_a_lower_place_in_the_list_ends_the_search():
    script = Script(listed(record(at(1)), cursor="x"), listed(record(at(-900)), cursor="y"))
    assert found(script) == [at(1)]
    assert script.asked == [LIST, LIST]
    assert script.calls[1].params["cursor"] == "x"


def test_the_place_in_the_list_counts_and_not_the_date():
    assert found(Script(listed(record(at(1), seconds=-4e6), record(at(-900), seconds=60)))) == [at(1)]


def test_too_many_newer_posts_cannot_be_searched() -> None:
    script = Script(*(listed(record("a", "Other"), cursor="x") for _ in range(10)))
    assert isinstance(ADAPTER.recover(job(script, since=lambda: NOW)), CannotTell)
