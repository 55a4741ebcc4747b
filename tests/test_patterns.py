"""Every pattern takes linear time, so that no caller can block others with a long text.

The test finds every regular expression in the code. Each is listed either with the worst foreign texts for it, or as a
pattern for texts of socialpub.
"""

import ast
import gc
import importlib
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, compile_path

from socialpub.core import units
from socialpub.core.secrets.redaction import redact, visible
from socialpub.core.settings.schema import ProvidersSection
from socialpub.providers import comparison, links, registry
from socialpub.providers.auth import Account
from socialpub.providers.base import Content, Provider
from socialpub.providers.bluesky.card import read_page
from socialpub.providers.bluesky.graphemes import count_graphemes
from socialpub.providers.bluesky.text import find_marks
from socialpub.providers.x.text import EMOJI, find_links, weigh
from socialpub.publishing.posts import content
from socialpub.web.http import responses
from socialpub.web.routes import API, DASHBOARD, PAGES
from tests.test_architecture import OURS

MOST = 32 * 1024
SIZES = [MOST >> shift for shift in (12, 10, 8, 6, 4, 2, 0)]
GROWTH = 10.0
"""How many times as long a text four times as long may take. In step with the length would be 4, its square 16."""
HOPELESS = 30
"""How many times as long as the longest calm text none of a quarter of its length may take, however it grows."""
ROUNDS = 3

Worst = tuple[str, str, str]
"""What a text begins with, what it repeats, how it ends."""

# --- what meets foreign text, and the worst that could be sent to it -------------------------------------------------

EVERYWHERE: list[Worst] = [
    *(("", piece, "") for piece in (" ", "a", "0", "a.", "-", "@a", "a_", "://", "=", "\\", "/", "?", "<", '"', "…")),
    ("a", " ", "!"),
    ("0", "0", "!"),
]
"""Sent to every pattern."""

FOREIGN: dict[str, list[Worst]] = {
    "accounts.consents:_ERROR_CODE": [("", "a_", "!")],
    "accounts.connect:_DATE_TIME": [("2026-11-21T11:30:00.", "1", "x")],
    "core.units:_DURATION": [("", "1", "x")],
    "core.logging:_PLAIN": [("", "a", " ")],
    "core.secrets.redaction:_API_KEY": [("", "spk_", ""), ("spk_", "a", " ")],
    "core.secrets.redaction:_BEARER": [("", "bearer ", ""), ("bearer", " ", "!"), ("", "basic a", "")],
    "core.secrets.redaction:_COOKIE": [
        ("", "cookie: ", ""),
        ("", 'cookie:"\\', ""),
        ("cookie", " ", ""),
        ("", "cookie:\n", ""),
        ("", "set-", ""),
    ],
    "core.secrets.redaction:_NAMED": [
        ("", "access_token: ", ""),
        ("", 'password:"\\', ""),
        ('signature="', "\\", ""),
        ("", 'x"=\\"', ""),
        ("code_verifier", " ", ""),
        ("", "token_", ""),
    ],
    "core.secrets.redaction:_PERHAPS": [
        ("", "code=", ""),
        ("", "code= ", ""),
        ("", "state: a_", ""),
        ("code", "\\", ""),
        ("", "code=aA1bB2cC3dD4eE5fF6 ", ""),
        ("code=", "a_", " "),
    ],
    "core.secrets.redaction:_PERHAPS_SECRET_NAME": [("", "code", "")],
    "core.secrets.redaction:_QUERY": [("a?", "a", ""), ("", "a?a", ""), ("", "?=", "")],
    "core.secrets.redaction:_SECRET_NAME": [("", "access_", "")],
    "core.secrets.redaction:_URL_QUERY": [("", "http://", ""), ("http://", "a", ""), ("", "http://a?", " ")],
    "core.secrets.redaction:_USER_INFO": [("", "://a", ""), ("://", "a", "")],
    "core.secrets.redaction:_WORDY": [
        ("", "a_", "!"),
        ("", "aB", "!"),
        ("", "aAa", "!"),
        ("", "1.", "!"),
        ("", "A", "a!"),
    ],
    "core.settings.loader:_typed": [("", "1", "x")],
    "web.dashboard.browser.visit:_code": [("", ", or run `", "x"), (", or run `", "a", ""), (", or run `", "`", "")],
    "core.settings.loader:find_overlap": [("", "1.", "x")],
    "core.settings.loader:_check_listen": [("[", ":", ""), ("", "a.", ""), ("a:", "1", "")],
    "core.settings.values:HOST": [("", "a.", "!"), ("", "0:", "!")],
    "core.settings.messages:_AT": [("", " (at line 1", ""), ("", " ", "("), (" (at line 1", "1", "")],
    "core.settings.messages:_TWICE": [("Cannot declare (", ")", "x"), ("Cannot declare (", ") twice", "x")],
    "core.settings.messages:explain_toml": [("", " ", "x"), ("'", "a", ""), ("", "'", "")],
    "core.settings.networks:_UPLOAD_HOST": [("", "a", "!"), ("", "a-", "!"), ("", "a.", "!"), ("", "*.", "!")],
    "core.secrets.redaction:_INVISIBLE": [("", "\x1b", ""), ("", "\u200d", "")],
    "core.secrets.redaction:_JOINED_EMOJI": [
        ("", "\U0001f468\u200d", ""),
        ("", "\U0001f468\ufe0f", ""),
        ("", "\ufe0f", ""),
    ],
    "db.process_lock:_NAME": [("", "a", "!")],
    "media.decoder.client:_SIDES_OF_BOXED": [("", "ispe\0\0\0\0", ""), ("", "ispe\0", "")],
    "media.decoder.jpeg:_MARKER": [("", "\xff", ""), ("", "\xff\0", "")],
    "media.decoder.jpeg:_STOP_WITH_RESTARTS": [("", "\xff", ""), ("", "\xff\0", ""), ("", "\xff\xd0", "")],
    "media.decoder.structure:_AFTER_A_COMMENT": [("", "*/", ""), ("", "*/aaaaa\0", "")],
    "media.decoder.structure:_AT_THE_START_BEHIND_THE_END": [("#!", " ", "")],
    "media.decoder.structure:_BEHIND_THE_END": [
        ("", "<?=aaaa\0", ""),
        ("", "<svg ", ""),
        ("", "PK\3\4", ""),
        ("", "\0", ""),
    ],
    "media.decoder.structure:_GIF_AS_SCRIPT": [("GIF89a", "=", "")],
    "publishing.media.download:_CHARSET": [("", "charset", ""), ("charset", " ", "!"), ("charset=", "a", "!")],
    "web.http.shapes:_BLANK": [("", "\u2800", "!")],
    "web.http.shapes:_CONTROL": [("", "a", "\0")],
    "web.http.shapes:_PARTS": [("2036-11-21T11:30:00.", "1", "x"), ("2036-11-21T11:30:00+", "1:", "x")],
    "web.http.shapes:_find_faults": [("+01:00", "0", "x")],
    "web.http.shapes:_END_OF_NAME": [("", '"', ""), ('"', " ", "!"), ("", '" ', "")],
    "media.decoder.structure:_PAGE_OR_SCRIPT": [("<!doctype", " ", ""), ("", "<!doctype ", ""), ("", "<script", "")],
    "media.decoder.videos:_POSITION": [("", "gps", ""), ("xyz", "x", "")],
    "media.decoder.videos:_POSITION_IN_XMP": [("", "GPSL", ""), ("", "GPSLongitud", "")],
    "media.files:_RENDITION_KEY": [("fitted/", "a", "."), ("fitted/a/", "0", "")],
    "media.files:_KEY": [("00/", "0", "."), ("", "0-", "")],
    "providers.bluesky.card:_ATTRIBUTE": [
        ("", 'a="', ""),
        ("", "a =", ""),
        ("a", " ", ""),
        ("", "a", ""),
        ("", "a='", '"'),
    ],
    "providers.bluesky.card:_CHARSET": [("", "charset", ""), ("charset", " ", ""), ("charset=", "a", " ")],
    "providers.bluesky.card:_CHARSETS": [("iso-8859-", "1", "")],
    "providers.bluesky.card:_TOKEN": [
        *(
            ("", piece, "")
            for piece in ("<!--", "<script", "<meta ", '<meta "', "<meta '\"", "<title", "<title>", "<meta a='")
        ),
        ("<meta ", '"a"', ""),
        ("<script", "</scr", ""),
    ],
    "providers.bluesky.card:_UNSHOWN": [("", "\u200b ", ""), ("", " ", "")],
    "providers.bluesky.check:_CONTROLS": [("", "a", "")],
    "providers.bluesky.graphemes:CLUSTER": [
        ("", "\u0301", ""),
        ("", "\u0600", ""),
        ("", "\u0915\u094d", ""),
        ("\u0915", "\u0301", "a"),
        ("", "\u1100", ""),
        ("", "\u1161", ""),
        ("", "\U0001f468\u200d", ""),
        ("\U0001f468", "\u0301", "a"),
    ],
    "providers.bluesky.card:_BEYOND_ASCII": [("", "a", "é")],
    "providers.bluesky.card:_LOOKS_LIKE_PAGE": [("", "<!-- -->", ""), ("", "<!--", ""), ("<?xml ", " ", "")],
    "providers.bluesky.text:_CASHTAG": [("", "$a ", ""), ("", "$a", "x"), ("", "($", "")],
    "providers.bluesky.text:_MENTION": [("@", "a", "_"), ("@", "-", " "), ("", "(@", ""), ("", "@a.", "_")],
    "providers.bluesky.text:_TAG": [("", "#", " "), ("", " #", ""), ("#", "1", " ")],
    "providers.bluesky.client:_wait_seconds": [("", "9", "x")],
    "providers.bluesky.client:read_error": [("", "A", "!")],
    "providers.bluesky.servers:_ADDRESS": [("https://", "a.", "^"), ("https://[", ":", ""), ("https://a/", "/", "!")],
    "providers.bluesky.servers:_DID": [("did:web:", "a.", "!"), ("did:plc:", "a", "!")],
    "providers.bluesky.servers:_HANDLE": [("", "a.", "!"), ("", "a-", "."), ("", "a", "!")],
    "providers.comparison:_JOINED_MARKS": [("", "\u034f", ""), ("", "\ufe0f", "")],
    "providers.comparison:normalize_link": [("", "a+", ":")],
    "providers.options:_wrong_color": [("#", "0", "")],
    "providers.options:_wrong_digits": [("", "0", "x")],
    "providers.options:LANGUAGE_TAG": [("de-", "a", ""), ("de", "-1", "")],
    "providers.options:_wrong_link": [("", "a", " ")],
    "providers.pinterest.client:read_id": [("", "0", "x")],
    "providers.pinterest.client:_is_name": [("", "AA_", "!"), ("A", "A", "!")],
    "providers.pinterest.client:_wait_seconds": [("", " ", "x"), (" ", "9", "")],
    "providers.pinterest.upload:_storage_code": [("", "<Code>", ""), ("", "<Code>A", ""), ("<Code>", "A", "")],
    "providers.pinterest.preview:_TAG": [("", "#1", ""), ("#", "1", " "), ("", "#a ", "")],
    "providers.links:_ASCII_LABEL": [("", "a", "1")],
    "providers.links:_BEGINS": [
        *(("", piece, "") for piece in ("(a", "https://", "http://a.", "a.a ", "(a.a")),
        ("a", ".a", "_a"),
        ("https://", "a:", "/"),
    ],
    "providers.links:_IPV6": [("[", "a:", "")],
    "providers.links:_PORT": [(":", "1", "")],
    "providers.responses:_HTML": [("<?xml", "<", ""), ("<?xml", "<html", ""), ("", "<", "")],
    "providers.responses:_LONG_WORD": [("", "a" * 47 + " ", ""), ("", "a", " ")],
    "providers.responses:_UNSTORABLE": [("", "\0", ""), ("", "\ud800", "")],
    "providers.responses:retry_after_seconds": [("-", "9", "x")],
    "providers.tiktok.upload:PAGE": [("", " ", "x"), ("", " <", ""), ("<!doctype", " ", "")],
    "providers.tiktok.auth:PKCE_FAULT": [("", "code", ""), ("", "code_", "")],
    "providers.tiktok.preview:_TAG": [("", "#1", ""), ("#", "1", " "), ("", "@a.", ""), ("@", "a.", "#")],
    "providers.tiktok.read_back:_LINK": [("https://", "!", " ")],
    "providers.tiktok.read_back:_post_ids": [("1", "0", "x")],
    "providers.auth:TOKEN": [("", "!", " ")],
    "providers.base:UPLOAD_ADDRESS": [("https://", "a.", "^"), ("https://[", ":", ""), ("https://a/", "!", " ")],
    "providers.x.check:_YUV": [("yuv420p", "1", "x"), ("yuvj", "4", "p")],
    "providers.x.client:read_id": [("", "0", "x")],
    "providers.x.text:EMOJI": [
        ("", "\ud83d\udc68\u200d", ""),
        ("", "\ud83c\udff4\udb40\udc67", ""),
        ("", "1\ufe0f", ""),
        ("\ud83c\udff4", "\udb40\udc67", ""),
    ],
    "providers.x.client:TYPE_OF_X": [("", "https://", ""), ("https://", "a", "")],
    "providers.x.client:_one_word": [("Aa", "A", "!"), ("A", "a", "!"), ("", "Aa", "!")],
    "providers.x.text:_BEGINNING": [("", "A", ""), ("", "@a", ""), ("", "é", "")],
    "providers.x.text:_CHAIN": [("", "é", ""), ("", "-", "@")],
    "providers.x.text:_LABEL_DOTS": [("", "\u3002", "")],
    "providers.x.text:_LATIN": [("", "é", "")],
    "providers.x.text:_NEIGHBOR": [("", "@", "")],
    "providers.x.text:_PARENTHESES": [("(", "a", ""), ("", "(", ""), ("(", "a(a", ""), ("", "(a(a)", "")],
    "providers.x.text:_PATH_PART": [("", "!", ""), ("a", "!", "\0")],
    "providers.x.text:_PATH_RUN": [("", "!", "")],
    "providers.x.text:_PORT": [(":", "0", "")],
    "providers.x.text:_PUNYCODE": [("xn--", "-", "")],
    "providers.x.text:_QUERY": [("?", "!", ""), ("?", "?", ""), ("?a", "!", "")],
    "providers.x.text:_SHORTENED": [("https://t.co/a?", "!", ""), ("https://t.co/", "a", "")],
    "providers.x.text:_BEYOND_ASCII": [("", "a", "é")],
    "providers.x.text:_PAIR": [("", "\ud83d", "")],
    "providers.x.text:_TWO_UNITS": [("", "\U0001f468", "")],
    "providers.x.read_back:ENDS_OPEN": [("", "… ", "x"), ("…", " ", "x"), ("", "https://t.co/a", "x")],
    "providers.x.read_back:MEDIA_KEY": [("", "0", "x")],
    "providers.x.read_back:MEDIA_PAGE": [("", "/status/1", ""), ("/status/", "0", ""), ("", "/status/1/photo/1", "")],
    "providers.x.read_back:could_be": [("", "0", "x")],
    "providers.x.auth:OAUTH_ERROR": [("", "a_", "!"), ("a", "a", "_")],
    "providers.x.auth:REFUSED_TOKENS": [("", "value passed for the token ", "")],
    "providers.x.preview:_TAG": [("", "#1", ""), ("#", "1", " "), ("", "@a@", ""), ("", "$a.", ""), ("", "#", "")],
    "providers.x.client:_number": [("", "9", "x")],
    "providers.x.read_back:CUT_SHORT": [("", "… ", "x"), ("…", " ", "x"), ("", "…https://t.co/a ", "x")],
    "providers.x.read_back:NAME": [("", "@", ""), ("@", "a", "")],
    "providers.x.read_back:PARTS": [("", "https://t.co/", ""), ("https://t.co/", "a", "")],
    "providers.x.read_back:SHORT_LINK": [("", "https://t.co/", ""), ("https://t.co/", "a", "")],
    "providers.x.text:_MENTION": [("", "@", ""), ("", "@a ", ""), ("@", "a", "ì"), ("", "rt@a:", "")],
    "providers.x.text:_CASHTAG": [("", " $a", "x"), ("", " $", ""), (" $", "a", "")],
    "providers.x.text:_HEAVY": [("", "\u3042", "")],
    "publishing.posts.content:_LEADING_NAMES": [("", " @a", " "), ("@", "a", "@"), ("@a", " ", "!")],
    "publishing.posts.content:_LINK": [("", "a.", ""), ("", ":/", "")],
    "publishing.posts.idempotency:_FORM": [("", "a", "\x7f")],
    "web.dashboard.overview:_NO_LETTERS": [("", "1-", "a"), ("", "1a", "")],
    "web.http.responses:_WEIGHT": [("q=0.", "1", "x")],
    "web.http.client_address:_WITH_PORT": [("[", "a", ""), ("", "1", ":"), ("a:", "1", "")],
    "web.http.endpoint:_ID": [("", "0-", ""), ("", "0", "-")],
    "web.http.shapes:_LONE_SURROGATE": [("", "\ud7ff", "")],
    "web.pages.pages:_FILE_NAME": [("", "a", "!")],
    "web.http.app:_OWN_ID": [("", "a", "\x7f")],
    "web.http.shapes:_INSTANT": [("2026-11-21T11:30:00.", "1", "x")],
    "web.http.shapes:_NUMBER": [("-", "1", "x")],
}

OUR_OWN = {
    "cli.client.arguments:_PAIR": "an argument of the own command",
    "cli.client.arguments:_TIME": "an argument of the own command",
    "cli.client.arguments:read_thread": "a file of the own command",
    "cli.setup:_for_this_installation": "a unit of ours",
    "core.manual:_ENTRY": "the index of the manual",
    "core.manual:_FINDING": "the subjects of doctor in the manual",
    "core.manual:_MARK": "the topics of the manual",
    "core.manual:anchor": "the headings of the manual",
    "core.secrets.redaction:_forms": "the escapes of an encoded secret",
    "core.settings.loader:_OF_KUBERNETES": "the variables of this process",
    "providers.options:snake_name": "the names of options, written in this house",
    "web.openapi.operations:code_samples": "the addresses of the API, written in this house",
    "web.pages.pages:_BOLD": "what the reference says, written in this house",
    "web.pages.pages:_BACKTICKS": "what problems and the reference say, written in this house",
}


def previewed(adapter: Provider, text: str) -> None:
    adapter.preview(Content(text), {}, Account("1", facts={"subscription_type": "Premium"}))


READERS: dict[str, tuple[Callable[[str], Any], list[Worst]]] = {
    "durations.parse": (lambda one: quietly(units.parse_duration, one), [("", "1", "s")]),
    "redact": (
        redact,
        [w for name, worst in FOREIGN.items() if name.startswith("core.secrets.redaction") for w in worst],
    ),
    "visible": (
        visible,
        [w for name, worst in FOREIGN.items() if name.startswith("core.secrets.redaction") for w in worst],
    ),
    "comparison.readings": (
        comparison.readings,
        [("", "&#", ""), ("&#", "1", ";"), ("", "&amp", ""), ("", "\u0301", "")],
    ),
    "comparison.normalize_link": (
        comparison.normalize_link,
        [("http://", "a.", ""), ("", "%", ""), ("http://", "\u0301", "")],
    ),
    "equal_content.key": (lambda one: content.make_content_key(one, 0), [("", " @a", " "), ("", "a.a", "")]),
    "x.links.find": (
        lambda one: list(find_links(one)),
        [
            *[w for name, worst in FOREIGN.items() if name.startswith("providers.x.text") for w in worst],
            *[("", piece, "") for piece in ("a.com/!", "a.com/(", "a.com/(a", "a.com?", "é.com.", "xn--.", "a_.com")],
            ("a.com/", "(", ""),
            ("a.com/", "(a)", ""),
            ("https://", "a.com.", ""),
        ],
    ),
    "links.find_links": (
        lambda one: list(links.find_links(one)),
        [
            *FOREIGN["providers.links:_BEGINS"],
            *(("", piece, "") for piece in ("https://a.b/(", "a.co/", "https://a.", "https://a-", "a.co/)", "a.co:1")),
            ("https://a/", "(", ""),
            ("https://a/", "!", ""),
        ],
    ),
    "x.text.weigh": (weigh, [("", "a.com ", ""), ("", "$a ", ""), ("", "\u0301", ""), ("", "\U0001f468", "")]),
    "x.text.EMOJI": (EMOJI.findall, FOREIGN["providers.x.text:EMOJI"]),
    **{
        f"{name}.preview": (
            partial(previewed, adapter),
            [
                ("", piece, "")
                for piece in ("a.com ", "👍", "@a ", "#a", "https://a ", "http://", "\u0301", "a" * 99 + " ")
            ],
        )
        for name, adapter in registry.build(ProvidersSection()).items()
    },
    "bluesky.text.find_marks": (
        find_marks,
        [("", piece, "") for piece in ("#!", "#! ", "a.com ", "(a.com", "@a.test ", "$A ", "#a", "https://a.b(")],
    ),
    "bluesky.card.read_page": (
        lambda one: read_page(one.encode(errors="replace"), None, "https://a.test"),
        [("", piece, "") for piece in ("<meta property=og:title content=a>", "<meta ", "&amp;", "<!--", "<script>")],
    ),
    "bluesky.graphemes.count": (count_graphemes, FOREIGN["providers.bluesky.graphemes:CLUSTER"]),
    "accept.prefers_page": (
        lambda one: responses.prefers_page(
            Request({"type": "http", "headers": [(b"accept", b"text/html," + one.encode("latin-1", "replace"))]})
        ),
        [("", ",", ""), ("", ";", ""), ("", "a/a;q=1,", ""), ("", "q=", ""), ("", ";q=0.1", "")],
    ),
}
"""What reads a text with several patterns, one behind the other."""


def quietly(read: Callable[[str], Any], text: str) -> None:
    try:
        read(text)
    except ValueError:
        return


# --- how long it takes -----------------------------------------------------------------------------------------------


def seconds(work: Callable[[], Any]) -> float:
    gc.disable()  # a full collection takes longer than any text here
    began = time.process_time()
    work()
    took = time.process_time() - began
    gc.enable()
    return took


@cache
def calm() -> float:
    """Return the seconds of one step for each character of the longest text. Less is never too long."""
    letters, text = re.compile("[a-z]"), "a" * MOST
    return min(seconds(lambda: [None for _ in letters.finditer(text)]) for _ in range(ROUNDS))


def check_growth(read: Callable[[str], Any], worst: Worst) -> None:
    """Check that the longest text takes about four times as long as a quarter of it, in one of several rounds.

    Shorter texts end a failing check early.
    """
    begin, piece, end = worst
    told = f"{begin!r}, {piece!r} again and again, {end!r}"
    took = dict.fromkeys(SIZES, 0.0)
    texts = {size: begin + piece * ((size - len(begin) - len(end)) // len(piece)) + end for size in SIZES}

    def is_fine() -> bool:
        return took[MOST] <= calm() or took[MOST] <= took[MOST // 4] * GROWTH

    for size, text in texts.items():
        took[size] = seconds(lambda text=text: read(text))  # type: ignore[misc]
        if size < MOST and took[size] > HOPELESS * calm():
            pytest.fail(f"{size} characters ({told}) take {HOPELESS} times as long as {MOST} calm ones")
    for _ in range(ROUNDS):
        if is_fine():
            return
        for size in (MOST // 4, MOST):
            took[size] = min(took[size], seconds(lambda text=texts[size]: read(text)))  # type: ignore[misc]
    if not is_fine():
        growth = took[MOST] / took[MOST // 4]
        pytest.fail(f"{MOST} characters ({told}) take {growth:.0f} times as long as a quarter of them")


# --- what there is ---------------------------------------------------------------------------------------------------

METHODS = {"search", "match", "fullmatch", "findall", "finditer", "sub", "subn", "split"}
ALL_MATCHES = {"findall", "finditer", "sub", "subn", "split"}

Found = dict[str, list[tuple["re.Pattern[Any]", frozenset[str]]]]
"""By place: patterns, and the methods by which they are used."""


WITH_PATTERN = re.compile(r"\bre\.|\bpattern=")
"""What a module contains that has a pattern in a call."""


@cache
def patterns() -> Found:
    found: Found = defaultdict(list)
    sources = {name: path.read_text() for name, path in OURS}
    trees = {name: ast.parse(source) for name, source in sources.items()}
    uses = {name: used_methods(tree) for name, tree in trees.items()}
    for name, tree in trees.items():
        short = name.removeprefix("socialpub.")
        for constant in assigned(tree):
            users = [uses[name]] if constant.startswith("_") else uses.values()
            methods = frozenset(method for user in users for method in user[constant]) or frozenset({"search"})
            for pattern in patterns_in(getattr(importlib.import_module(name), constant, None)):
                found[f"{short}:{constant}"].append((pattern, methods))
        for function, method, pattern in inline(tree) if WITH_PATTERN.search(sources[name]) else ():
            found[f"{short}:{function}"].append((pattern, frozenset({method})))
    return found


def assigned(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def patterns_in(value: Any) -> Iterator["re.Pattern[Any]"]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from patterns_in(item)
    elif isinstance(value, dict):
        yield from patterns_in([*value.keys(), *value.values()])


def used_methods(tree: ast.Module) -> defaultdict[str, set[str]]:
    uses = defaultdict(set)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            match node.value:
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    uses[name].add(node.attr)
    return uses


def inline(tree: ast.Module) -> Iterator[tuple[str, str, "re.Pattern[Any]"]]:
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and (method := re_function(call)) is not None:
                assert method != "compile", f"line {call.lineno}: a pattern is a constant of its module"
                flags = [word.value for word in call.keywords if word.arg == "flags"] or call.args[
                    3 if "sub" in method else 2 :
                ]
                yield function.name, method, re.compile(evaluated(call.args[0]), *(evaluated(flag) for flag in flags))
    for call in ast.walk(tree):
        for word in call.keywords if isinstance(call, ast.Call) else ():
            if word.arg == "pattern":
                yield f"line {call.lineno}", "search", re.compile(evaluated(word.value))


def re_function(call: ast.Call) -> str | None:
    function = call.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re":
        return function.attr if function.attr in METHODS | {"compile"} else None
    return None


def evaluated(node: ast.expr) -> Any:
    return eval(compile(ast.Expression(node), "<pattern>", "eval"), {"re": re})


def applied(pattern: "re.Pattern[Any]", method: str) -> Callable[[str], Any]:
    """Return the call that applies the pattern to a text."""
    if method in ALL_MATCHES:

        def use(text: Any) -> Any:
            return [None for _ in pattern.finditer(text)]
    else:
        use = getattr(pattern, method)
    if isinstance(pattern.pattern, bytes):
        return lambda text: use(text.encode("latin-1", "replace"))
    return use


# --- and what holds --------------------------------------------------------------------------------------------------


@pytest.mark.source
def test_the_list_of_patterns_is_complete() -> None:
    assert sorted(patterns()) == sorted([*FOREIGN, *OUR_OWN])


@pytest.mark.parametrize("place", FOREIGN)
def test_a_pattern_takes_linear_time(place: str) -> None:
    for pattern, methods in patterns()[place]:
        for method in methods:
            for worst in (*EVERYWHERE, *FOREIGN[place]):
                check_growth(applied(pattern, method), worst)


@pytest.mark.parametrize("name", READERS)
def test_a_function_with_several_patterns_takes_linear_time(name: str) -> None:
    read, more = READERS[name]
    for worst in (*EVERYWHERE, *more):
        check_growth(read, worst)


def test_matching_a_route_takes_linear_time() -> None:
    for route in (*API, *PAGES, *DASHBOARD, Route("/media/{key:path}", PlainTextResponse)):
        regex = compile_path(route.path)[0]
        for worst in (*EVERYWHERE, ("/posts/", "/", "x"), ("/media/", "/", "\n"), ("", "/a", "\n")):
            check_growth(regex.match, worst)
