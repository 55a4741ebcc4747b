"""A fault of our own decoder is 503 and keeps the file. Only the reasons of contract 5.5 reject a file."""

import pytest

from socialpub.media.decoder import client
from tests.integration.uploads.caller import Caller
from tests.samples import media
from tests.support.decoding import child

IN_LIBRARIES = {
    "PyAV lost an argument": "import av; opens = av.open; av.open = lambda *a, **k: opens(*a, **k, lost=1)",
    "PyAV lost an attribute": "import av.logging; del av.logging.PANIC",
    "libmagic fails": "inspect.detect_type = lambda _: __import__('magic').from_buffer(0)",
    "a crash": "process._respond = lambda *_: os.abort()",
    "an end without a response": "process._respond = lambda *_: sys.exit(1)",
}


def complete(caller: Caller, data: bytes, mime_type: str, before: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Complete an upload with a decoder that has this fault, then with the decoder as it is."""
    reservation = caller.send_file(data, mime_type)
    with monkeypatch.context() as patched:
        patched.setattr(client, "_COMMAND", child(before))
        reply = caller.complete(reservation)
    if reply.status == 503:
        assert caller.complete(reservation).status == 200, "the file was kept"
    return int(reply.status)


@pytest.mark.parametrize("before", IN_LIBRARIES.values(), ids=IN_LIBRARIES)
def test_a_decoder_that_fails_for_every_file_rejects_none(caller, tmp_path, monkeypatch, caplog, before):
    video = media.video_mp4(tmp_path / "a.mp4", 0.25).read_bytes()
    assert complete(caller, video, "video/mp4", before, monkeypatch) == 503
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == [
        "an artifact could not be examined"
    ]


@pytest.mark.parametrize("error", ["TypeError", "ValueError", "OSError"])
@pytest.mark.parametrize("place", ["Image.open", "PngImagePlugin.PngImageFile.load"])
def test_an_error_of_pillow_with_every_image_rejects_none(caller, png, monkeypatch, error, place):
    before = f"from PIL import Image, PngImagePlugin\ndef broken(*_, **__): raise {error}('changed')\n{place} = broken"
    assert complete(caller, png, "image/png", before, monkeypatch) == 503


@pytest.mark.parametrize("error", ["1 / 0", "{}['rotation']", "int('')"])
def test_an_error_of_our_code_with_one_file_does_not_reject_it(caller, tmp_path, monkeypatch, error):
    """Valid samples do not show such a fault: only some videos are rotated."""
    source = f"def fails(*_): return {error}\n"
    ours = "from socialpub.media.decoder import images, videos\n"
    ours += f"exec(compile({source!r}, videos.__file__, 'exec'))\n"
    ours += "facts = videos._facts\nvideos._facts = lambda *a: facts(*a) if 'samples' in a[0].name else fails()\n"
    ours += "images.orientation = lambda image: 1 if 'samples' in image.fp.name else fails()"
    video = media.video_mp4(tmp_path / "a.mp4", 0.25).read_bytes()
    assert complete(caller, video, "video/mp4", ours, monkeypatch) == 503
    png = media.png(tmp_path / "a.png").read_bytes()
    assert complete(caller, png, "image/png", ours, monkeypatch) == 503
