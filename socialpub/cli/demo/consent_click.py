"""A browser for the demo: opens a network's consent page, consents, and follows it back to the appliance.

It reads the page as a browser would and sends the form as it stands there, so it goes through the very flow that
`connect-profile` takes with a person in front of it.
"""

from html.parser import HTMLParser
from urllib.parse import urljoin

import httpx2

from socialpub.cli.errors import CommandError

TIMEOUT_SECONDS = 30


def allow(consent_url: str, account: str) -> None:
    """Give `account`'s consent to all that the page asks for. Raises `CommandError` when no page led back."""
    with httpx2.Client(trust_env=False, timeout=TIMEOUT_SECONDS) as browser:
        page = browser.get(consent_url)
        form = ConsentForm()
        form.feed(page.text)
        if page.status_code != 200 or form.action is None or account not in form.accounts:
            raise CommandError(
                f"The sandbox shows no consent page for @{account} ({page.status_code}).", "Its log tells more."
            )
        response = browser.post(
            urljoin(consent_url, form.action), data={**form.fields, "account": account, "decision": "allow"}
        )
        if response.status_code not in (302, 303) or "location" not in response.headers:
            raise CommandError(
                f"The sandbox's consent page did not lead back ({response.status_code}).", "Its log tells more."
            )
        # Whatever page comes now: the appliance tells how it ended.
        browser.get(urljoin(consent_url, response.headers["location"]))


class ConsentForm(HTMLParser):
    """What the page's one form would send if nothing on it were changed."""

    def __init__(self) -> None:
        super().__init__()
        self.action: str | None = None
        self.fields: dict[str, str] = {}
        self.accounts: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.action = found.get("action", "")
        elif tag == "input" and found.get("name") == "account":
            self.accounts.add(found.get("value", ""))
        elif tag == "input" and "name" in found and "disabled" not in found and _is_sent(found):
            self.fields[found["name"]] = found.get("value", "on")


def _is_sent(found: dict[str, str]) -> bool:
    """A box or a choice is sent only when it is marked."""
    return found.get("type") not in ("checkbox", "radio") or "checked" in found
