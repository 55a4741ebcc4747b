"""An installation in which every page has something to show: made by the API and by commands, as an owner would."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2

from socialpub.cli.demo.image import paint
from tests.e2e.installation import Installation

PLANS = (
    (1, 9, "New in the shop: linen in four colours 🌿", ("x", "pinterest")),
    (1, 17, "Behind the scenes: how we dye with walnut shells", ("tiktok",)),
    (2, 8, "Reader question: does linen shrink? Our answer in three sentences.", ("x",)),
    (4, 12, "Saturday market, stand 14. Come and say hello!", ("x", "pinterest")),
    (6, 9, "One week until the winter collection", ("x", "tiktok", "pinterest")),
    (9, 18, "Winter collection: everything in one board", ("pinterest",)),
    (13, 9, "Thank you for a wonderful opening", ("x",)),
)
"""Days ahead, hour, text and networks of what is scheduled."""

DETAIL = "You are not permitted to perform this action."
REFUSAL = {"title": "Forbidden", "detail": DETAIL, "type": "about:blank", "status": 403}


class Stage:
    """`page_of` holds addresses of the dashboard that only exist here, by what they show."""

    def __init__(self, folder: Path) -> None:
        self.installation = Installation(folder, pace=0)
        self.page_of: dict[str, str] = {}

    def __enter__(self) -> "Stage":
        try:
            self.installation.prepare()
            self.installation.sandbox()
            self.installation.start("serve")
            self._set()
        except BaseException:
            self.installation.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.installation.close()

    def sign_in(self, browser_password: str) -> None:
        self.installation.admin("set-password", stdin=f"{browser_password}\n")

    # --- what happened ------------------------------------------------------------------------------------------------

    def _set(self) -> None:
        at, caller = self.installation, self.installation.caller()
        for name, profile in (("The studio", at.profile_on["x"]), ("Linen & Light", at.profile_on["pinterest"])):
            at.admin("rename-profile", profile, name)
        at.admin("set-options", at.profile_on["pinterest"], f"boardId={at.board_id}")
        picture = caller.upload(paint("Linen & Light"), "studio.png", "image/png")
        other = caller.upload(paint("Winter collection"), "winter.png", "image/png")

        at.x.script("create_post", "fails_with", status=403, body=REFUSAL)
        failed = self._publish("Open studio tonight, doors at seven", ("x",), [picture])
        at.x.calm()
        shown = self._publish(
            "Our studio in the evening light. New colours from Monday: https://linen.example/winter #linen",
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
            "post that failed": f"/posts/{failed}",
            "post that is scheduled": f"/posts/{scheduled}",
            "edit": f"/posts/{scheduled}/edit",
            "reschedule": f"/posts/{scheduled}/reschedule",
            "profile": f"/profiles/{profile}",
            "disconnect": f"/profiles/{profile}/disconnect",
        }

    def _publish(self, text: str, networks: tuple[str, ...], media: list[str]) -> str:
        """The id of a post, once it has an outcome."""
        post = self._create(text, networks, media)
        self.installation.caller().post(post, wait=60)
        return post

    def _create(self, text: str, networks: tuple[str, ...], media: list[str], **content: Any) -> str:
        options = {"tiktok": {"privacyLevel": "SELF_ONLY"}} if "tiktok" in networks else {}
        body = {
            "post": {"body": text, **content},
            "profiles": [self.installation.profile_on[network] for network in networks],
            "media": [{"artifactId": one, "alt": "The studio in the evening"} for one in media],
            "providerOptions": options,
        }
        answer: httpx2.Response = self.installation.caller().ask("POST", "/api/v1/posts", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["data"]["id"])
