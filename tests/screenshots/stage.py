"""An installation with content for every page, created through the API and commands."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2

from socialpub.cli.demo.walkthrough import paint_image
from tests.e2e.installation import PEOPLE, Installation
from tests.e2e.processes import until

PASSWORD = "correct horse battery"
PLANS = (
    (1, 9, "New in the shop: linen in four colours", ("x", "pinterest")),
    (1, 17, "Behind the scenes: how we dye with walnut shells", ("tiktok",)),
    (2, 8, "Reader question: does linen shrink? Our answer in three sentences.", ("x",)),
    (4, 12, "Saturday market, stand 14. Come and say hello!", ("x", "pinterest")),
    (6, 9, "One week until the winter collection", ("x", "tiktok", "pinterest")),
    (9, 18, "Winter collection: everything in one board", ("pinterest",)),
    (13, 9, "Thank you for a wonderful opening", ("x",)),
)
"""Days ahead, hour, text and networks of scheduled posts."""

DETAIL = "You are not permitted to perform this action."
REFUSAL = {"title": "Forbidden", "detail": DETAIL, "type": "about:blank", "status": 403}


TEXT = "Our studio in the evening light. New colours from Monday: https://linen.example/winter #linen"


class Stage:
    """`installation` has content, `new` is empty. `page_of` has addresses by name, `troubled` has addresses of
    pages with problems."""

    def __init__(self, folder: Path) -> None:
        settings = '[publishing]\nresend_after = "1m"\n'
        self.installation = Installation(folder / "stage", pace=0, settings=settings)
        self.new = Installation(folder / "new", pace=0)
        self.page_of: dict[str, str] = {}
        self.troubled: dict[str, str] = {}
        self.pictures = [folder / "studio.png", folder / "winter.png"]

    def __enter__(self) -> "Stage":
        try:
            self.installation.prepare()
            self.installation.sandbox()
            self.installation.start("serve")
            for path, title in zip(self.pictures, ("Linen & Light", "Winter collection"), strict=True):
                path.write_bytes(paint_image(title))
            # Both calls for it break off, the second of them a minute later: meanwhile others are photographed.
            self.installation.x.script("create_post", "drops_connection_before_effect", times=2)
            self._unknown = self._create("Last places in the dyeing class on Friday", ("x",), [])
            self.new.create()
            self.set_up_link = next(word for word in self.new.start("serve").output.split() if "/setup?token=" in word)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.installation.close()
        self.new.close()

    # --- what happened ------------------------------------------------------------------------------------------------

    def set(self) -> None:
        """Create profiles, keys and posts."""
        at, caller = self.installation, self.installation.caller()
        for name, profile in (("The studio", at.profile_on["x"]), ("Linen & Light", at.profile_on["pinterest"])):
            at.admin("rename-profile", profile, name)
        at.admin("set-options", at.profile_on["pinterest"], f"boardId={at.board_id}")
        at.admin("set-password", stdin=f"{PASSWORD}\n")
        picture, other = (caller.upload(path.read_bytes(), path.name, "image/png") for path in self.pictures)
        until(lambda: caller.post(self._unknown, wait=60)["status"] == "settled", "its outcome is unknown")

        at.x.script("create_post", "fails_with", status=403, body=REFUSAL)
        failed = self._publish("Open studio tonight, doors at seven", ("x",), [picture])
        at.x.calm()
        shown = self._publish(
            TEXT,
            ("x", "tiktok", "pinterest"),
            [picture, other],
        )
        self._publish("Small batches, natural dyes.", ("x", "pinterest"), [other])
        for days, hour, text, networks in PLANS:
            when = datetime.now(UTC).replace(hour=hour, minute=0, second=0, microsecond=0) + timedelta(days=days)
            scheduled = self._create(text, networks, [picture], scheduledAt=when.isoformat())
        at.admin("create-key", "n8n", "--provider", "x")
        at.admin("create-key", "newsletter script", "--scope", "read", "--expires-in", "90d")
        profile = at.profile_on["pinterest"]
        self.page_of |= {
            "post": f"/posts/{shown}",
            "post-that-failed": f"/posts/{failed}",
            "post-of-unknown-outcome": f"/posts/{self._unknown}",
            "post-again-unknown": f"/posts/{self._unknown}/again",
            "post-that-is-scheduled": f"/posts/{scheduled}",
            "post-cancel": f"/posts/{scheduled}/cancel",
            "post-publish-now": f"/posts/{scheduled}/publish",
            "edit": f"/posts/{scheduled}/edit",
            "copy": f"/compose?from={shown}",
            "reschedule": f"/posts/{scheduled}/reschedule",
            "profile": f"/profiles/{profile}",
            "profile-on-tiktok": f"/profiles/{at.profile_on['tiktok']}",
            "disconnect": f"/profiles/{profile}/disconnect",
        }

    def trouble(self) -> None:
        """Revoke tokens, use up credits, and pause publishing."""
        at = self.installation
        profile = at.profile_on["pinterest"]
        at.pinterest.tell("tokens", username=PEOPLE[0], end="removed")
        self._create(
            "The last pins of the season",
            ("pinterest",),
            [at.caller().upload(self.pictures[0].read_bytes(), "studio.png", "image/png")],
        )
        until(
            lambda: at.caller().ask("GET", f"/api/v1/profiles/{profile}").json()["data"]["status"] != "active", "dead"
        )
        at.x.script("create_post", "refuses", code="credits_depleted", times=100)
        held = self._create("A word before the weekend", ("x",), [])
        until(lambda: at.caller().attempts(held), "held")
        at.admin("pause")
        self.troubled |= {
            "trouble-overview": "/",
            "trouble-profiles": "/profiles",
            "trouble-profile": f"/profiles/{profile}",
            "trouble-post-held": f"/posts/{held}",
            "trouble-compose": "/compose",
            "trouble-system": "/system",
            "trouble-findings": "/system/findings",
            "trouble-resume": "/system/resume",
        }

    def _publish(self, text: str, networks: tuple[str, ...], media: list[str]) -> str:
        """Wait for the outcome of a post and return its id."""
        post = self._create(text, networks, media)
        self.installation.caller().post(post, wait=60)
        return post

    def _create(self, text: str, networks: tuple[str, ...], media: list[str], **content: Any) -> str:
        options = {"tiktok": {"privacyLevel": "SELF_ONLY"}} if "tiktok" in networks else {}
        body: dict[str, Any] = {
            "post": {"body": text, **content},
            "profiles": [self.installation.profile_on[network] for network in networks],
            "providerOptions": options,
        }
        if media:
            body["media"] = [{"artifactId": one, "alt": "The studio in the evening"} for one in media]
        answer: httpx2.Response = self.installation.caller().ask("POST", "/api/v1/posts", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["data"]["id"])
