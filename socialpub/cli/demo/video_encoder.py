"""Drawing and encoding of the demo's video, a sunset over hills."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
from PIL import Image, ImageDraw

WIDTH, HEIGHT = 720, 1280
DRAWN_WIDTH, DRAWN_HEIGHT = 360, 640
"""A quarter of the pixels takes a quarter of the time. In a moving image the difference is not visible."""
SUN = 92
"""The diameter of the sun in drawn pixels."""
FRAMES, FRAME_RATE = 108, 24
"""Pinterest requires at least four seconds, TikTok at least 23 frames a second."""
CODEC = "libx264"


def encode(path: Path) -> bytes:
    """Write the video, and return it: H.264 in MP4, a few hundred kilobytes."""
    with av.open(str(path), "w", format="mp4", options={"movflags": "+faststart"}) as container:
        track: Any = container.add_stream(CODEC, rate=FRAME_RATE, options={"preset": "ultrafast", "crf": "24"})
        track.width, track.height, track.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        sun, hills = _sun(), _hills()
        frame_of: Any = av.VideoFrame.from_image
        for number in range(FRAMES):
            frame = frame_of(_scene(number / FRAMES, sun, hills)).reformat(WIDTH, HEIGHT, "yuv420p")
            frame.pts, frame.time_base = number, Fraction(1, FRAME_RATE)
            container.mux(track.encode(frame))
        container.mux(track.encode(None))
    return path.read_bytes()


def _hills() -> Image.Image:
    """Return three ridges, transparent above."""
    layer = Image.new("RGBA", (WIDTH, HEIGHT))
    draw = ImageDraw.Draw(layer)
    for depth, (base, swing, colour) in enumerate(
        ((0.66, 0.035, (122, 68, 108)), (0.75, 0.03, (82, 50, 96)), (0.86, 0.02, (45, 33, 71)))
    ):
        ridge = [(x, HEIGHT * (base + swing * math.sin(x / WIDTH * (4 + depth) + depth * 2))) for x in range(0, 729, 8)]
        draw.polygon([*ridge, (WIDTH, HEIGHT), (0, HEIGHT)], fill=(*colour, 255))
    return layer.resize((DRAWN_WIDTH, DRAWN_HEIGHT))  # from larger to smaller: the edges become soft


def _sun() -> Image.Image:
    """Return the shape of the sun as a mask."""
    mask = Image.new("L", (4 * SUN, 4 * SUN))
    ImageDraw.Draw(mask).ellipse([0, 0, 4 * SUN - 1, 4 * SUN - 1], fill=255)
    return mask.resize((SUN, SUN))


def _scene(at: float, sun: Image.Image, hills: Image.Image) -> Image.Image:
    """Return one frame. `at` goes from 0, late afternoon, to 1, dusk."""
    top = _between((92, 128, 190), (22, 22, 62), at)
    bottom = _between((255, 206, 140), (214, 92, 84), at)
    # Resizing turns two pixels into a gradient.
    sky = Image.new("RGB", (1, 2))
    sky.putpixel((0, 0), top)
    sky.putpixel((0, 1), bottom)
    frame = sky.resize((DRAWN_WIDTH, DRAWN_HEIGHT), Image.Resampling.BILINEAR)
    left, upper = DRAWN_WIDTH * (0.45 + 0.1 * at), DRAWN_HEIGHT * (0.23 + 0.4 * at)
    frame.paste(_between((255, 244, 200), (255, 176, 96), at), (round(left), round(upper)), sun)
    frame.paste(hills, (0, 0), hills)
    return frame


def _between(first: tuple[int, int, int], last: tuple[int, int, int], at: float) -> tuple[int, int, int]:
    red, green, blue = (round(value + (other - value) * at) for value, other in zip(first, last, strict=True))
    return red, green, blue
