"""The contract of every adapter."""

import ast
import json
import re
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

import socialpub
from socialpub.db.states import State
from socialpub.providers.auth import Account
from socialpub.providers.base import Content, MediaFile, Provider
from socialpub.publishing.posts import drafts
from socialpub.publishing.posts.drafts import Draft, DraftMedia
from tests.providers.grid import Environment, begin
from tests.providers.networks import NETWORKS, STORIES, story_of
from tests.providers.sample_artifacts import sample_artifact
from tests.samples import media
from tests.support.appliance import OWNER, accept, message_of, state_of
from tests.support.drain import drain
from tests.support.select import select_all

FOLDER = Path(socialpub.__file__).parent / "providers"

OPTIONS: dict[str, dict[str, Any]] = {
    "x": {
        "replySettings": "mentionedUsers", "madeWithAi": True, "paidPartnership": False,
        "inReplyToPostId": "1900000000000000001", "quotePostId": "2", "communityId": "3", "shareWithFollowers": True,
    },
    "tiktok": {
        "mode": "direct", "privacyLevel": "SELF_ONLY", "title": "Three views", "disableComment": True,
        "disableDuet": False, "disableStitch": True, "videoCoverTimestampMs": 1500, "photoCoverIndex": 1,
        "autoAddMusic": False, "brandContentToggle": False, "brandOrganicToggle": True, "isAigc": True,
    },
    "pinterest": {
        "boardId": "2000000000000000001", "boardSectionId": "2000000000000000101", "title": "Poster no. 4",
        "link": "https://studio.example/poster-4", "dominantColor": "#6E7874", "coverImageKeyFrameTime": 3,
        "aiDisclosures": ["AI_MODIFIED", "SYNTHETIC_PERFORMER"],
        "coverArtifactId": "01a12f57-1a80-7074-9d08-074dfc0027ba",
    },
    "bluesky": {
        "replyControl": "followers", "contentLabels": ["nudity", "graphic-media"], "languages": ["de", "pt-BR"],
        "linkCard": False,
    },
}  # fmt: skip
"""Every option with a correct value."""

OF_A_FILE = "coverArtifactId"
"""Needs an existing artifact."""
KEYS = [(network, key) for network, known in OPTIONS.items() for key in known]
SILENT = {"fit", "fit_photos", "send_chunks", "send_last", "settle_draft", "upload"}
"""Steps without a call, or with a call to an upload host without request ids."""


def snake(key: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower()


@pytest.fixture
def adapters(env: Environment) -> dict[str, Provider]:
    return env.rt.providers


def test_the_grid_covers_every_network(adapters):
    assert set(adapters) == set(NETWORKS) == set(OPTIONS)
    assert {name: adapter.name for name, adapter in adapters.items()} == {name: name for name in adapters}
    assert {adapter.label for adapter in adapters.values()} == {"X", "TikTok", "Pinterest", "Bluesky"}


@pytest.mark.parametrize("network", NETWORKS)
def test_every_option_has_two_spellings_and_one_stored_name(adapters, network):
    read = adapters[network].read_options
    assert read(OPTIONS[network]) == (OPTIONS[network], [])
    assert read({snake(key): value for key, value in OPTIONS[network].items()}) == (OPTIONS[network], [])
    assert read(dict.fromkeys(OPTIONS[network])) == ({}, []), "null is as good as nothing"


@pytest.mark.parametrize(("network", "key"), KEYS)
def test_the_error_of_a_misspelled_option_names_the_right_option(adapters, network, key):
    for misspelt in (key[:-1], key.upper() + "_", key.replace("e", "ee", 1)):
        if misspelt == key:
            continue
        options, (problem,) = adapters[network].read_options({misspelt: OPTIONS[network][key]})
        assert options == {}
        assert problem.path == ("providerOptions", network, misspelt)
        assert key in problem.message or snake(key) in problem.message


@pytest.mark.parametrize(("network", "key"), KEYS)
def test_a_value_of_the_wrong_type_is_a_problem_and_never_used(adapters, network, key):
    wrongs: list[Any] = [[], {}, 1.5, "", " "]
    for wrong in wrongs:
        options, (problem,) = adapters[network].read_options({key: wrong})
        assert options == {}
        assert problem.path == ("providerOptions", network, key)
        assert problem.message.startswith(key)


@pytest.mark.parametrize(("network", "key"), KEYS)
def test_a_posts_own_option_overrides_a_stored_option_in_any_spelling(adapters, network, key):
    stored, own = OPTIONS[network], {snake(key): OPTIONS[network][key]}
    merged = adapters[network].merge_options(stored, own)
    assert adapters[network].read_options(merged) == (stored, [])
    assert adapters[network].read_options(adapters[network].merge_options(stored, {key: None}))[0] == {
        name: value for name, value in stored.items() if name != key
    }


def contents(folder: Path) -> list[Content]:
    image = MediaFile(0, "image", "image/jpeg", 1000, folder / "a.jpg", "a.jpg", None, {"width": 320, "height": 240})
    film_facts = {"width": 640, "height": 480, "duration_seconds": 5.0, "frame_rate": 30.0, "video_codec": "h264"}
    video = MediaFile(0, "video", "video/mp4", 10_000, folder / "a.mp4", "a.mp4", None, film_facts)
    large = replace(video, size_bytes=150_000_000)
    many = tuple(replace(image, position=number) for number in range(36))
    odd = replace(video, mime_type="video/webm", facts={**film_facts, "duration_seconds": 4000.0, "frame_rate": 5.0})
    mixed = (image, replace(video, position=1))
    sets = [(), (image,), many[:2], many[:5], many, (video,), (large,), (odd,), mixed]
    return [Content(text, files) for text in ("", "Hello", "x" * 5000) for files in sets]


@pytest.mark.parametrize("network", NETWORKS)
def test_check_is_pure_and_every_error_names_the_remedy(adapters, network, tmp_path):
    adapter, account = adapters[network], Account("1", "demo")
    for content in contents(tmp_path):
        for options in ({}, OPTIONS[network]):
            given = deepcopy(options)
            found = adapter.check(content, given, account)
            assert found == adapter.check(content, given, account)
            assert given == options
            assert all(problem.path[0] in ("post", "media", "providerOptions", "profiles") for problem in found)
            assert all(len(problem.message) > 20 for problem in found)
            assert all(isinstance(note, str) for note in adapter.notes(content, given))


@pytest.mark.parametrize("network", NETWORKS)
def test_a_plan_has_exactly_one_commit_and_follows_from_content_and_options_alone(adapters, network, tmp_path):
    adapter, account = adapters[network], Account("1", "demo")
    made = 0
    for content in contents(tmp_path):
        chosen = {key: value for key, value in OPTIONS[network].items() if key != OF_A_FILE}
        for options in (chosen, {**chosen, "mode": "draft"}):
            if adapter.check(content, options, account):
                continue
            made += 1
            steps = list(adapter.plan(content, options))
            assert [step.kind.commits for step in steps].count(True) == 1
            assert len({step.name for step in steps}) == len(steps)
            assert steps == list(adapter.plan(deepcopy(content), dict(reversed(options.items()))))
    assert made >= 2


@pytest.mark.parametrize(
    ("network", "body", "with_picture", "options"),
    [
        ("x", "x" * 281, False, {}),
        ("x", "Hello", False, {"replySetings": "following"}),
        ("tiktok", "Hello", False, {"privacyLevel": "SELF_ONLY"}),
        ("tiktok", "Hello", True, {}),
        ("tiktok", "Hello", True, {"privacyLevel": "SELF_ONLY", "photoCoverIndex": 3}),
        ("pinterest", "Hello", True, {"boardId": "Summer prints"}),
        ("pinterest", "x" * 801, False, {"boardId": "1"}),
    ],
)
def test_a_delivery_fails_with_the_errors_of_validate_before_anything_is_sent(
    env, network, body, with_picture, options
):
    profile = NETWORKS[network].connect(env.rt, env.world)
    image = DraftMedia(sample_artifact(env.rt, env.samples / "plain.jpg", "image/jpeg", media.jpeg))
    files = (image,) if with_picture else ()
    draft = Draft(body, None, (profile,), files, {network: options} if options else None)
    (checked,) = drafts.check_draft(env.rt, env.rt.db, draft, OWNER)
    assert checked.problems
    post = accept(env.rt, profile, body=body, media=files, options=draft.options)
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.FAILED
    assert message_of(env.rt, post) == " ".join(problem.message for problem in checked.problems)
    assert env.transport.called == []


def secrets_of(env: Environment) -> list[str]:
    world = env.world
    tokens = [
        secret
        for network in world.networks.values()
        for token in list(network.tokens.values())
        for secret in (token.access, token.refresh)
        if secret
    ]
    uploads = [task.upload_token for task in world.tiktok.tasks.values() if task.upload_token]
    forms = [
        video.form[name]
        for video in world.pinterest.media.values()
        for name in ("x-amz-signature", "x-amz-security-token", "policy")
    ]
    return [*tokens, *uploads, *forms, "signature="]


@pytest.mark.parametrize(("network", "story"), STORIES, ids=[" · ".join(story) for story in STORIES])
def test_the_database_has_no_secret_after_any_step_and_ids_stay_exact(env, network, story):
    played, chosen = story_of(network, story)
    looks = 0

    def look(_: httpx2.Request) -> None:
        nonlocal looks
        looks += 1
        file = env.rt.settings.database_file
        written = b"".join(path.read_bytes() for path in file.parent.glob(f"{file.name}*"))
        assert [secret for secret in secrets_of(env) if secret.encode() in written] == []

    with chosen.under():
        post = begin(env, played, chosen, played.connect(env.rt, env.world))
        env.transport.before_call = look
        env.world.networks[network].next(chosen.commit.partition("#")[0]).fails_with(403)
        drain(env.rt, env.clock)
        again = begin(env, played, chosen, played.connect(env.rt, env.world, "another"), username="another")
        drain(env.rt, env.clock)
        look(httpx2.Request("GET", "http://end"))
    assert looks > 2
    assert state_of(env.rt, again) is State.PUBLISHED, message_of(env.rt, again)
    assert state_of(env.rt, post).final
    attempts = select_all(
        env.rt.db,
        """SELECT t.step, t.request_id FROM attempt t JOIN delivery d ON d.id = t.delivery_id WHERE d.post_id = ?""",
        (again,),
    )
    assert attempts
    if played.has_request_ids:
        assert [row[0] for row in attempts if row[1] is None and row[0] not in SILENT] == []
    for row in select_all(env.rt.db, "SELECT memo FROM delivery"):
        assert isinstance(json.loads(row[0]), dict)


def test_no_adapter_sleeps_or_reads_a_clock():
    for network in NETWORKS:
        for path in (FOLDER / network).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                named += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                assert not {"time", "asyncio", "threading", "socialpub.core.clock"} & set(named), path
                if isinstance(node, ast.Attribute):
                    taken = ast.unparse(node)
                    assert taken not in ("datetime.now", "datetime.utcnow", "date.today"), path
