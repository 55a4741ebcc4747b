"""Posts from the terminal: why they are as they are, and how to stop one."""

import json
from datetime import timedelta
from types import SimpleNamespace

from socialpub.accounts.api_keys import Caller
from socialpub.cli.admin import posts as commands_of_posts
from socialpub.cli.admin.posts import SIGNS
from socialpub.cli.output import ask_to_continue
from socialpub.db.tables import audit_log, post_rows
from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import Draft
from socialpub.runtime import Runtime
from tests.integration.cli.conftest import Terminal
from tests.support.appliance import accept
from tests.support.drain import drain

NOBODY = "019a4c8e-7c1b-7a55-9f0e-3b1f0c2d4e5f"


def refused(terminal: Terminal, rt: Runtime, says: str = "No.", body: str = "Hello") -> str:
    terminal.world.x.next("create_post").fails_with(403, {"detail": says, "status": 403})
    post = accept(rt, terminal.connect(), body=body)
    drain(rt, terminal.clock)
    return post


def test_a_published_post_shows_its_plan_with_ticks_and_every_attempt(terminal, rt):
    post = accept(rt, terminal.connect(), body="Hello\nworld")
    drain(rt, terminal.clock)
    shown = terminal("admin", "show-post", post).stdout
    assert f"Post {post}: settled" in shown
    assert "  | Hello\n  | world\n" in shown
    assert "✓ create_post" in shown
    assert "published" in shown
    (up,) = terminal.world.x.posts
    assert up.id in shown
    assert "None" not in shown
    told = json.loads(terminal("admin", "show-post", post, "--json").stdout)
    assert told["post"]["status"] == "settled"
    assert told["plans"][0]["steps"] == [{"step": "create_post", "kind": "commit", "done": True}]
    assert told["attempts"][-1]["outcome"] == "published"
    assert told["attempts"][-1]["requestId"] in shown


AGENT = Caller("agent", "write", approval=True)


def version_of(terminal: Terminal, post: str) -> str:
    shown = json.loads(terminal.success("admin", "show-post", post, "--json").stdout)["version"]
    assert f"  version   {shown}\n" in terminal.success("admin", "show-post", post).stdout
    return str(shown)


def test_a_post_of_an_agent_is_approved_or_stopped(terminal, rt):
    profile = terminal.connect()
    first, second = (rt.write(posts.create, Draft(text, None, (profile,)), AGENT) for text in ("One", "Two"))
    shown = terminal("admin", "show-post", first).stdout
    assert "no plan yet, waits for your approval" in shown
    assert f"Waits for the owner's approval: {rt.settings.base_url}/posts/{first}" in shown
    version = version_of(terminal, first)
    done = terminal("admin", "approve-post", first, "--if-version", version)
    assert (done.exit_code, "  | One" in done.stdout) == (0, True)
    assert "The post is approved and is published now." in done.stderr
    again = terminal("admin", "approve-post", first, "--if-version", version)
    assert (again.exit_code, "does not wait for an approval" in again.stderr) == (1, True)
    assert terminal("admin", "stop-post", second).exit_code == 0
    refused = terminal("admin", "approve-post", second, "--if-version", version_of(terminal, second))
    assert (refused.exit_code, "nothing to approve" in refused.stderr) == (1, True)
    assert terminal("admin", "approve-post", NOBODY, "--if-version", version).exit_code == 1
    drain(rt, terminal.clock)
    assert [post.text for post in terminal.world.x.posts] == ["One"]
    recorded = [one.action for one in audit_log.load_page(rt.db, ["post"]).entries]
    assert recorded[:2] == ["post.stopped", "post.approved"]


def test_a_script_approves_only_the_version_that_it_names(terminal, rt):
    post = rt.write(posts.create, Draft("Good morning", rt.now() + timedelta(hours=1), (terminal.connect(),)), AGENT)
    version = version_of(terminal, post)
    assert version_of(terminal, post) == version
    rt.write(posts.edit, post, Draft.change(body="Buy my coin"), AGENT)
    for wrong in (version, version[:-1], "", version.upper()):
        refused = terminal("admin", "approve-post", post, "--if-version", wrong)
        assert (refused.exit_code, refused.stdout) == (1, ""), wrong
        assert "changed after you read it, so it is not approved" in refused.stderr
    blind = terminal("admin", "approve-post", post, stdin="y\n")
    assert (blind.exit_code, "--if-version is required" in blind.stderr) == (2, True)
    terminal.clock.forward(2 * 3600)
    drain(rt)
    assert terminal.world.x.posts == []
    last = terminal("admin", "approve-post", post, "--if-version", version_of(terminal, post))
    assert last.exit_code == 0, last.stderr


def test_at_a_terminal_the_owner_reads_the_post_and_then_agrees(terminal, rt, monkeypatch):
    monkeypatch.setattr(commands_of_posts, "sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    post = rt.write(posts.create, Draft("Good morning", rt.now() + timedelta(hours=1), (terminal.connect(),)), AGENT)
    for answer in ("n\n", "\n", ""):
        refused = terminal("admin", "approve-post", post, stdin=answer)
        assert (refused.exit_code, "  | Good morning" in refused.stdout) == (1, True)

    def agree_and_edit(question: str) -> None:
        ask_to_continue(question)
        rt.write(posts.edit, post, Draft.change(body="Buy my coin"), AGENT)

    with monkeypatch.context() as patched:
        patched.setattr(commands_of_posts, "ask_to_continue", agree_and_edit)
        refused = terminal("admin", "approve-post", post, stdin="y\n")
    assert (refused.exit_code, "changed after you read it" in refused.stderr) == (1, True)
    done = terminal("admin", "approve-post", post, stdin="y\n")
    assert (done.exit_code, "The post is approved" in done.stderr) == (0, True)
    done = terminal("admin", "approve-post", post, stdin="y\n")
    assert (done.exit_code, "does not wait" in done.stderr) == (1, True)


def test_a_post_that_is_not_there_is_reported(terminal):
    for command in ("show-post", "stop-post", "retry-post"):
        assert terminal.refusal("admin", command, NOBODY).startswith("Error: No post has this id.")
        assert terminal("admin", command, "12").exit_code == 2


# --- lists -----------------------------------------------------------------------------------------------------------


def test_posts_are_listed_newest_first_one_line_each(terminal, rt):
    first = refused(terminal, rt, body="First\nof all")
    terminal.clock.forward(1)
    second = accept(rt, terminal.connect(), body="Second", at=rt.now() + timedelta(hours=1))
    header, _, *lines = terminal("admin", "list-posts").stdout.splitlines()
    assert header.split() == ["ID", "Time", "Status", "Deliveries", "Text"]
    assert [line.split()[0] for line in lines] == [second, first]
    assert "2026-10-12 10:00:01 UTC" in lines[0]
    assert "… x" in lines[0]
    assert f"{SIGNS['failed']} x" in lines[1]
    assert "First of all" in lines[1]


def test_an_unknown_outcome_has_a_sign_and_is_retried_only_on_request(terminal, rt):
    post = accept(rt, terminal.connect())
    rt.db.write(
        lambda tx: tx.execute_sql("UPDATE delivery SET state = 'unconfirmed', error_message = 'Outcome unknown: x'")
    )
    rt.db.write(lambda tx: post_rows.settle_if_resolved(tx, post))
    assert "? x" in terminal("admin", "list-posts").stdout
    assert "--include-unknown" in terminal.refusal("admin", "retry-post", post)
    assert terminal("admin", "retry-post", post, "--include-unknown").exit_code == 0
