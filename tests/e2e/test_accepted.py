"""A 201 means that the post is on the disk: after any kill, the post is published exactly once."""

CALLERS, EACH = 20, 10


def test_a_post_outlives_a_web_process_that_is_killed_right_after_its_201(installation, caller):
    worker = installation.start("worker")
    web = installation.start("web")
    post = installation.fresh_caller().publish("Accepted", installation.profiles[0])
    web.kill()
    installation.start("web")
    delivery = installation.fresh_caller().delivery(post)
    assert delivery["status"] == "published", delivery
    assert worker.running
    assert installation.x.texts() == ["Accepted"]


def test_a_caller_who_missed_the_201_and_sends_again_after_the_kill_gets_the_same_post(installation, caller):
    create = {"post": {"body": "Did it arrive?"}, "profiles": [installation.profiles[0]]}
    key = {"idempotency-key": "the first try"}
    web = installation.start("web")
    missed = caller.ask("POST", "/api/v1/posts", json=create, headers=key)
    web.kill()
    installation.start("web")
    installation.start("worker")
    again = installation.fresh_caller().ask("POST", "/api/v1/posts", json=create, headers=key)
    assert again.status_code == 201, again.text
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json()["data"]["id"] == missed.json()["data"]["id"]
    assert installation.caller().delivery(again.json()["data"]["id"])["status"] == "published"
    assert installation.x.texts() == ["Did it arrive?"]
