"""A picture for the demo, made on the spot: an evening sky with a few words."""

import io
import math

from PIL import Image, ImageDraw, ImageFont


def paint(words: str, width: int = 1200, height: int = 675) -> bytes:
    """A PNG of an evening over hills, with `words` on it."""
    sky = Image.linear_gradient("L").resize((width, height))
    picture = Image.composite(
        Image.new("RGB", (width, height), (255, 158, 94)), Image.new("RGB", (width, height), (38, 36, 92)), sky
    )
    draw = ImageDraw.Draw(picture)
    sun = height * 0.14
    centre = (width * 0.72, height * 0.55)
    draw.ellipse([centre[0] - sun, centre[1] - sun, centre[0] + sun, centre[1] + sun], fill=(255, 226, 158))
    for depth, (base, swing, colour) in enumerate(
        ((0.66, 0.05, (122, 68, 108)), (0.76, 0.04, (82, 50, 96)), (0.87, 0.03, (45, 33, 71)))
    ):
        ridge = [
            (x, height * (base + swing * math.sin(x / width * (4 + depth) + depth * 2) + 0.012 * math.sin(x / 37)))
            for x in range(0, width + 8, 8)
        ]
        draw.polygon([*ridge, (width, height), (0, height)], fill=colour)
    draw.text((width * 0.06, height * 0.1), "socialpub", font=ImageFont.load_default(92), fill=(255, 244, 224))
    draw.text((width * 0.063, height * 0.27), words, font=ImageFont.load_default(34), fill=(255, 214, 170))
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return file.getvalue()
