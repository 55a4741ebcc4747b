"""An accepted image can be made to fit: an encoder that runs out of memory gets a smaller image."""

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from socialpub.media.decoder import client, process, resize
from socialpub.media.types import CannotFit, FitLimits, MediaLimits
from tests.samples import media

WEBP = FitLimits(("image/webp",), 5_000_000, 3500, 3500)


def clear_webp(path: Path, side: int) -> Path:
    """A WebP file with transparency, which takes more memory to decode than any other type."""
    grey = Image.linear_gradient("L").resize((side, side))
    image = Image.merge("RGBA", (grey, grey.rotate(90), grey, grey.rotate(180)))
    image.save(path, "WEBP", lossless=True, quality=0, method=0)
    return path


def test_memory_that_is_enough_to_examine_an_image_is_enough_to_make_it_fit(tmp_path: Path) -> None:
    path, little = clear_webp(tmp_path / "a.webp", 4000), 460 * 2**20
    client.inspect_file(path, "image/webp", MediaLimits(), memory_bytes=little)
    fitted = client.fit(path, tmp_path / "b.webp", WEBP, memory_bytes=little)
    assert (fitted["mime_type"], fitted["width"], fitted["height"]) == ("image/webp", 3500, 3500)


@pytest.mark.endurance
@pytest.mark.parametrize(
    "limits",
    [
        FitLimits(("image/jpeg", "image/png", "image/webp"), 5_000_000, 8192, 8192),
        FitLimits(("image/jpeg", "image/png"), 10_000_000),
        FitLimits(("image/jpeg", "image/png"), 2_000_000),
        FitLimits(("image/jpeg", "image/webp"), 20_000_000, 1920, 1920, 1080),
    ],
    ids=["X", "Pinterest", "Pinterest's carousel", "TikTok"],
)
def test_100_megapixels_with_transparency_fit_every_network(tmp_path: Path, limits: FitLimits) -> None:
    path = clear_webp(tmp_path / "a.webp", 9990)
    client.inspect_file(path, "image/webp", MediaLimits())
    fitted = client.fit(path, tmp_path / "b", limits)
    assert fitted["changed"] and fitted["size_bytes"] <= limits.max_bytes


# --- an encoder that runs out of memory ------------------------------------------------------------------------------


@pytest.fixture
def greedy_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """An encoder without memory for more than 100,000 pixels, which says so as libwebp does."""
    save = Image.Image.save

    def greedy(image: Image.Image, *arguments: Any, **options: Any) -> None:
        if arguments[1] == "WEBP" and image.width * image.height > 100_000:
            raise ValueError("encoding error 1")
        save(image, *arguments, **options)

    monkeypatch.setattr(Image.Image, "save", greedy)


@pytest.mark.usefixtures("greedy_encoder")
def test_an_encoder_without_memory_gets_a_smaller_image(tmp_path: Path) -> None:
    source = media.png(tmp_path / "a.png", 600, 400)
    fitted = resize.fit(source, tmp_path / "b.webp", FitLimits(("image/webp",), 5_000_000))
    assert (fitted["width"], fitted["height"]) == (294, 196)
    assert fitted["gave_way"]


def test_an_encoder_that_meets_another_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("encoding error 4")

    source = media.png(tmp_path / "a.png", 600, 400)
    monkeypatch.setattr(Image.Image, "save", broken)
    with pytest.raises(CannotFit, match=r"cannot be written as image/webp \(encoding error 4\)"):
        resize.fit(source, tmp_path / "b.webp", FitLimits(("image/webp",), 5_000_000))


@pytest.mark.usefixtures("greedy_encoder")
def test_a_child_with_little_memory_of_its_own_writes_no_smaller_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = media.png(tmp_path / "a.png", 600, 400)
    request = client._writing("fit", source, tmp_path / "b.webp", FitLimits(("image/webp",), 5_000_000))
    work = process._load_work(request)
    assert process._respond(request, work)["result"]["width"] == 294
    assert "more memory" in process._respond(request | {"turn_bytes": 1}, work)["rejected"], "another turn has more"
    monkeypatch.setattr(process, "_memory_is_short", lambda: True)
    assert "too little memory" in process._respond(request, work)["failed"], "the post waits"
