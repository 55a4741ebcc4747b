"""The verdict: the answers to callers, the data of the appliance and the counts of the sandbox must agree.

Every contradiction becomes an account to be read: the post as the API shows it, its attempts, and the lines of the
sandbox's own journal about it.
"""

import base64
import json
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.chaos.accounts import ChaosAccount
from tests.chaos.promises import PromisedPost, Promises
from tests.e2e.caller import IN_INBOX, Caller
from tests.e2e.installation import Installation
from tests.support.oracle import Stated, find_row_contradictions, find_untruths

COMPLETE = "PUBLISH_COMPLETE"


@dataclass(frozen=True)
class ChaosEffect:
    """Something that a network has, once for each time it was made."""

    network: str
    username: str
    text: str
    created_at: str
    post_id: str | None
    sha256: str | None


@dataclass
class Verdict:
    installation: Installation
    caller: Caller
    accounts: dict[str, ChaosAccount]
    promises: Promises
    outcomes: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def reach(self) -> None:
        self.violations += self.promises.violations
        posts = {post["id"]: post for post in self.caller.posts()}
        effects = [effect for network in self.installation.networks for effect in self._effects(network)]
        self._nothing_is_lost(posts)
        self._outcomes_are_true(posts, effects)
        self._changes_were_kept(posts, effects)
        self._totals_are_the_rows()
        self._the_database_is_whole()

    # --- posts -------------------------------------------------------------------------------------------------------

    def _nothing_is_lost(self, posts: dict[str, dict[str, Any]]) -> None:
        for promised in self.promises.posts.values():
            post = posts.get(promised.post_id)
            if post is None:
                self._broken("LOST: answered with 201 and not in the list", promised, [])
                continue
            if post["status"] not in ("settled", "canceled"):
                self._broken(f"STUCK: still {post['status']}", promised, [])
            if sorted(one["profileId"] for one in post["deliveries"]) != sorted(promised.profiles):
                self._broken("OTHER PROFILES than were asked for", promised, [])
        for post_id in posts.keys() - self.promises.posts.keys():
            self.violations.append(f"UNASKED: no caller has an answer for this post:\n{self._told(post_id)}")

    def _outcomes_are_true(self, posts: dict[str, dict[str, Any]], effects: list[ChaosEffect]) -> None:
        """Count posts of equal content to one account together, because they cannot be distinguished."""
        made: dict[tuple[str, str, str], list[ChaosEffect]] = defaultdict(list)
        markers = {post.marker for post in self.promises.posts.values()}
        drafts = {post.sha256: post.marker for post in self.promises.posts.values() if post.kind == "draft"}
        for effect in effects:
            marker = effect.text.split(" ")[0] or drafts.get(effect.sha256, "")
            if marker not in markers:
                self.violations.append(f"UNASKED: the network has a post that no caller requested: {effect}")
            made[effect.network, effect.username, marker].append(effect)
        asked: dict[tuple[str, str, str], list[tuple[PromisedPost, dict[str, Any]]]] = defaultdict(list)
        for promised in self.promises.posts.values():
            for delivery in posts.get(promised.post_id, {"deliveries": []})["deliveries"]:
                account = self.accounts[delivery["profileId"]]
                asked[account.network, account.username, promised.marker].append((promised, delivery))
        for about in made.keys() | asked.keys():
            self._one_account(made[about], asked[about])

    def _one_account(self, made: list[ChaosEffect], asked: list[tuple[PromisedPost, dict[str, Any]]]) -> None:
        stated = [Stated.from_api(delivery) for _, delivery in asked]
        for (_, delivery), one in zip(asked, stated, strict=True):
            self.outcomes[f"{delivery['provider']} {one.outcome}"] += 1
        drafts = any(promised.kind == "draft" for promised, _ in asked)
        made_ids = [effect.post_id for effect in made]
        what = "; ".join(find_untruths(stated, made_ids, ids_are_known=not drafts))
        for promised, delivery in asked:
            if promised.sha256 and any(effect.sha256 not in (None, promised.sha256) for effect in made):
                what = what or "OTHER BYTES"
            if delivery["provider"] == "bluesky" and Stated.from_api(delivery).outcome == "unknown":
                what = what or "UNKNOWN, although a repeated call would have shown the outcome"
            if promised.canceled and (delivery["status"] != "canceled" or made):
                what = what or "CANCELED, and sent or not shown so"
        if what:
            self._broken(what, asked[0][0] if asked else None, made, [promised for promised, _ in asked[1:]])

    def _changes_were_kept(self, posts: dict[str, dict[str, Any]], effects: list[ChaosEffect]) -> None:
        texts = defaultdict(list)
        for effect in effects:
            texts[effect.text.split(" ")[0]].append(effect)
        for promised in self.promises.posts.values():
            if promised.kind != "scheduled" or promised.post_id not in posts:
                continue
            allowed = {promised.body, promised.maybe_body}
            if posts[promised.post_id]["body"] not in allowed:
                self._broken("THE CHANGE of the text is lost", promised, [])
            for effect in texts[promised.marker]:
                if effect.text not in allowed:
                    self._broken("THE OLD TEXT went out", promised, [effect])
                if promised.scheduled_at and _instant(effect.created_at) < _instant(promised.scheduled_at):
                    self._broken(f"BEFORE ITS TIME, {promised.scheduled_at}", promised, [effect])

    # --- totals ------------------------------------------------------------------------------------------------------

    def _totals_are_the_rows(self) -> None:
        with closing(sqlite3.connect(f"file:{self.installation.data / 'socialpub.db'}?mode=ro", uri=True)) as rows:
            each_network = {
                f"providers={network}": _with_delivery("1", network) for network in self.installation.networks
            }
            for query, statement in (TOTALS | each_network).items():
                answer = self.caller.ask("GET", f"/api/v1/posts?perPage=1&{query}")
                told = answer.json()["pagination"]["total"]
                counted = rows.execute(f"SELECT count(*) FROM post WHERE {statement}").fetchone()[0]
                if told != counted:
                    self.violations.append(f"TOTAL of the list with {query!r}: {told}, and there are {counted}")
            self.violations += find_row_contradictions(rows.execute)

    def _the_database_is_whole(self) -> None:
        with closing(sqlite3.connect(f"file:{self.installation.data / 'socialpub.db'}?mode=ro", uri=True)) as rows:
            found = rows.execute("PRAGMA integrity_check").fetchall()
        if found != [("ok",)]:
            self.violations.append(f"DAMAGED: {found}")

    # --- accounts ----------------------------------------------------------------------------------------------------

    def _effects(self, network: str) -> list[ChaosEffect]:
        shown = self.installation.control(network).show()
        match network:
            case "x":
                return [
                    ChaosEffect(network, post["username"], post["text"], post["created_at"], post["id"], _hash(post))
                    for post in shown["posts"]
                ]
            case "pinterest":
                return [
                    ChaosEffect(
                        network,
                        pin["username"],
                        pin["description"] or "",
                        pin["created_at"],
                        pin["id"],
                        pin["video"]["sha256"] if pin["video"] else None,
                    )
                    for pin in shown["pins"]
                ]
            case "bluesky":
                handles = {account["did"]: account["username"] for account in shown["accounts"]}
                return [
                    ChaosEffect(
                        network,
                        handles[post["did"]].removesuffix(".test"),
                        post["value"]["text"],
                        post["created_at"],
                        post["uri"],
                        _hash_of_blob(post["value"].get("embed", {}).get("video")),
                    )
                    for post in shown["posts"]
                ]
        return [
            ChaosEffect(
                network,
                task["username"],
                (task["post_info"].get("description") or task["post_info"].get("title") or ""),
                task["created_at"],
                next(iter(task["posts"]), None),
                _hash(task) if task["kind"] == "VIDEO" else None,
            )
            for task in shown["tasks"]
            if task["status"] in (IN_INBOX, COMPLETE)
        ]

    def _broken(
        self,
        what: str,
        promised: PromisedPost | None,
        made: list[ChaosEffect],
        others: list[PromisedPost] | None = None,
    ) -> None:
        told = [self._told(one.post_id) for one in ([promised] if promised else []) + (others or [])]
        marker = promised.marker if promised else made[0].text.split(" ")[0]
        lines = [f"{what}: {promised}", *told, *(f"  the network has {effect}" for effect in made)]
        self.violations.append("\n".join([*lines, *self._journal(marker)]))

    def _told(self, post_id: str) -> str:
        answer = self.caller.ask("GET", f"/api/v1/posts/{post_id}")
        attempts = self.caller.ask("GET", f"/api/v1/posts/{post_id}/attempts")
        way = [
            f"    {one['startedAt']} {one['step']} {one['outcome']} {one.get('message', '')}"
            for one in attempts.json().get("data", [])
        ]
        return "\n".join([f"  {json.dumps(answer.json())}", *way])

    def _journal(self, marker: str) -> list[str]:
        with self.installation.journal.open() as lines:
            return [f"  journal: {line.strip()[:600]}" for line in lines if f"{marker} " in line][:20]


def _hash(shown: dict[str, Any]) -> str | None:
    videos = [item["sha256"] for item in shown["media"] if str(item.get("mime_type", "video")).startswith("video")]
    return videos[0] if videos else None


def _hash_of_blob(blob: dict[str, Any] | None) -> str | None:
    """Return the hash in a blob's content id, which ends with it."""
    if blob is None:
        return None
    digits = blob["ref"]["$link"].removeprefix("b").upper()
    return base64.b32decode(digits + "=" * (-len(digits) % 8))[-32:].hex()


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _with_delivery(state: str, provider: str = "") -> str:
    network = f" AND provider = '{provider}'" if provider else ""
    return f"id IN (SELECT post_id FROM delivery WHERE {state}{network})"


TOTALS = {
    "": "1",
    "status=settled": "status = 'settled'",
    "status=canceled": "status = 'canceled'",
    "status=pending": "status = 'pending'",
    "providers=pinterest&status=settled": f"{_with_delivery('1', 'pinterest')} AND status = 'settled'",
    "deliveryStatus=published": _with_delivery("state = 'published'"),
    "deliveryStatus=failed": _with_delivery("state = 'failed'"),
    "deliveryStatus=unknown": _with_delivery("state = 'unconfirmed'"),
}
"""The totals of lists of every appliance, each with the condition on rows that it stands for."""
