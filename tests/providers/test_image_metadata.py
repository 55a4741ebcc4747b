"""What networks get of an image: the same picture without its metadata. The owner's file stays."""

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from PIL import Image, ImageChops, ImageOps

from socialpub.db.states import State
from socialpub.media.decoder import jpeg, structure
from socialpub.media.decoder.inspect import inspect_file
from socialpub.media.types import MediaLimits, MediaRejected
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.sandbox import World
from tests.endurance.media_fuzz import mutation, samples
from tests.providers.grid import BODY, Environment
from tests.providers.networks import NETWORKS
from tests.samples import media
from tests.support.appliance import accept, message_of, state_of
from tests.support.decoding import decode_here
from tests.support.drain import drain
from tests.support.sandbox_http import artifact
from tests.support.select import select_value

OPTIONS = {"x": {}, "tiktok": {"privacyLevel": "PUBLIC_TO_EVERYONE"}, "pinterest": {}, "bluesky": {}}


def arrived(world: World, network: str) -> list[bytes]:
    """Return the files of all published images, oldest first."""
    match network:
        case "x":
            images = [(world.x.cache, media.id) for media in world.x.media.values()]
        case "tiktok":
            images = [(world.tiktok.cache, image.id) for post in world.tiktok.catch_up() for image in post.media]
        case "bluesky":
            embeds = [post.value["embed"]["images"] for post in world.bluesky.posts]
            images = [(world.bluesky.cache, image["image"]["ref"]["$link"]) for images in embeds for image in images]
        case _:
            images = [(world.pinterest.cache, image.id) for pin in world.pinterest.pins for image in pin.pictures]
    return [cache.get(name) or b"" for cache, name in images]


def publish(env: Environment, network: str, path: Path, mime_type: str) -> tuple[str, bytes]:
    """Publish the image with a profile that is connected. Return the artifact's id and the published file."""
    played = NETWORKS[network]
    profile = select_value(env.rt.db, "SELECT id FROM profile WHERE provider = ?", (network,))
    artifact_id = artifact(env.rt, path, mime_type)
    options = {network: {**played.options(env.world, "demo"), **OPTIONS[network]}}
    post = accept(env.rt, profile, body=BODY, media=(DraftMedia(artifact_id),), options=options)
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    return artifact_id, arrived(env.world, network)[-1]


@pytest.mark.parametrize("network", NETWORKS)
def test_no_network_gets_an_images_location_and_the_pixels_stay(env, tmp_path, network):
    NETWORKS[network].connect(env.rt, env.world)
    photo = media.jpeg(tmp_path / "photo.jpg", 640, 960)
    original = photo.read_bytes()
    plain = structure.strip_metadata(original, "image/jpeg")
    assert plain is not None and b"Samplephone" in original and b"Samplephone" not in plain
    artifact_id, published = publish(env, network, photo, "image/jpeg")
    assert published == plain
    key = select_value(env.rt.db, "SELECT storage_key FROM artifact WHERE id = ?", (artifact_id,))
    assert env.rt.files.path(key).read_bytes() == original


# --- pictures before and after ---------------------------------------------------------------------------------------


def picture(data: bytes) -> Image.Image:
    """Return the image as a browser shows it on a white page."""
    with warnings.catch_warnings(action="ignore"), Image.open(io.BytesIO(data)) as image:
        image.load()
        shown = ImageOps.exif_transpose(image)
        if shown.mode.startswith("I;16"):
            return shown.convert("I").point(lambda value: value * (1 / 257) + 0).convert("L").convert("RGB")
        shown = shown.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", shown.size, (255, 255, 255, 255)), shown).convert("RGB")


def difference(original: bytes, published: bytes) -> float:
    """Return the largest difference of 8 × 8 pixels, 0 to 255."""
    try:
        before = picture(original)
    except OSError:
        # libjpeg gives up after the pixels: the end marker is missing, or damage after the last scan hides it.
        before = picture(jpeg.with_end(original))
    after = picture(published)
    if before.size != after.size:
        before = before.resize(after.size, Image.Resampling.LANCZOS, reducing_gap=3.0)
    blocks = ImageChops.difference(before, after).reduce(8)
    return max(high for _, high in blocks.getextrema())


LOSSLESS = {"x": "image/png", "bluesky": "image/png", "pinterest": "image/png", "tiktok": "image/webp"}
STILLS: list[tuple[Callable[[Path], Path], str]] = [
    (media.jpeg_progressive, "image/jpeg"),
    (lambda path: media.jpeg(path, orientation=6), "image/jpeg"),
    (media.jpeg_grey, "image/jpeg"),
    (media.jpeg_mpo, "image/jpeg"),
    (media.motion_photo, "image/jpeg"),
    (media.jpeg_cmyk, "image/jpeg"),
    (media.png, "image/png"),
    (media.png_alpha, "image/png"),
    (media.png_palette, "image/png"),
    (media.png_16bit, "image/png"),
    (lambda path: media.png_animated(path, 240, 200), "image/png"),
    (media.webp, "image/webp"),
    (lambda path: media.webp_animated(path, 240, 200), "image/webp"),
    (media.gif, "image/gif"),
    (media.heic, "image/heic"),
    (media.heif, "image/heif"),
    (media.avif, "image/avif"),
    (lambda path: media.avif_animated(path, 240, 200), "image/avif"),
]


@pytest.mark.parametrize("network", NETWORKS)
def test_every_kind_of_image_looks_the_same_after_it_was_published(env, tmp_path, monkeypatch, network):
    decode_here(monkeypatch)
    NETWORKS[network].connect(env.rt, env.world)
    for number, (make, mime_type) in enumerate(STILLS):
        path = make(tmp_path / f"{number}")
        env.clock.forward(1)  # only ten random bits distinguish two Bluesky keys of one microsecond
        artifact_id, published = publish(env, network, path, mime_type)
        original = path.read_bytes()
        assert difference(original, published) <= 4, (number, mime_type)
        kind = Image.MIME[Image.open(io.BytesIO(published)).format or ""]
        if mime_type == "image/gif":
            assert kind == LOSSLESS[network] and difference(original, published) == 0
        elif mime_type not in ("image/png", "image/webp"):
            assert kind == "image/jpeg"
        key = select_value(env.rt.db, "SELECT storage_key FROM artifact WHERE id = ?", (artifact_id,))
        assert env.rt.files.path(key).read_bytes() == original


def damaged_images(seed: int, count: int, folder: Path) -> list[tuple[str, str, bytes]]:
    """Return damaged images: name, type, file."""
    sound = {name: data for name, data in samples.make(folder).items() if samples.TYPES[Path(name).suffix] in STILL}
    for name, save in {"restarts.jpg": {}, "both.jpg": {"progressive": True}}.items():
        sound[name] = media.jpeg(folder / name, noise=True, restart_marker_rows=1, **save).read_bytes()
    names = list(sound)
    found = []
    for number in range(count):
        rng, name = Random(f"{seed}/{number}"), names[number % len(names)]
        data = sound[name]
        if name.endswith(".jpg") and rng.random() < 0.6:
            scan = data.rindex(b"\xff\xda") + 14
            for _ in range(rng.choice((1, 2, 5))):
                place = rng.randrange(scan, max(scan + 1, len(data) - 2))
                data = data[:place] + bytes((0xFF, rng.randrange(1, 256))) + data[place + 2 :]
        else:
            data = mutation.damaged(rng, name, data, list(sound.values()))
        found.append((name, samples.TYPES[Path(name).suffix], data))
    return found


STILL = frozenset(("image/jpeg", "image/png", "image/webp", "image/gif"))


def compare_damaged_images(env: Environment, folder: Path, seed: int, count: int) -> None:
    for network in NETWORKS:
        NETWORKS[network].connect(env.rt, env.world)
    differences = {}
    for number, (name, mime_type, data) in enumerate(damaged_images(seed, count, folder)):
        (path := folder / f"{number}").write_bytes(data)
        try:
            facts = inspect_file(path, mime_type, MediaLimits()).facts
        except MediaRejected:
            continue
        network = list(NETWORKS)[number % len(NETWORKS)]
        if min(facts["width"], facts["height"]) < 200 or mime_type == "image/gif":
            network = "bluesky"  # the others refuse small images, and X animates GIFs
        differences[f"{seed}/{number} {name} on {network}"] = difference(
            data, publish(env, network, path, mime_type)[1]
        )
    worst = max(differences, key=lambda label: differences[label])
    print(
        f"{len(differences)} of {count} damaged images were accepted. Largest difference: {differences[worst]:.0f} "
        f"of 255 ({worst})."
    )
    assert len(differences) > count / 10
    assert differences[worst] <= 24, worst


def test_a_damaged_image_is_refused_or_published_as_viewers_show_it(env, tmp_path, monkeypatch):
    decode_here(monkeypatch)
    compare_damaged_images(env, tmp_path, 20_261_128, 48)


@pytest.mark.endurance
def test_many_damaged_images_are_refused_or_published_as_viewers_show_them(env, tmp_path, monkeypatch):
    decode_here(monkeypatch)
    compare_damaged_images(env, tmp_path, 20_261_129, 1_000)
