"""What is damaged: small files of every accepted type, by name."""

from pathlib import Path

from tests.samples import media

TYPES = {
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
    ".gif": "image/gif",
    ".mp4": "video/mp4",
    ".mov": "video/quicktime",
    ".webm": "video/webm",
}


def make(folder: Path) -> dict[str, bytes]:
    """By name: the sound files."""
    written = [
        media.jpeg(folder / "photo.jpg", orientation=6),
        media.jpeg_progressive(folder / "progressive.jpg"),
        media.jpeg_mpo(folder / "two-pictures.jpg"),
        media.jpeg_with_profile(folder / "profile.jpg"),
        media.motion_photo(folder / "motion.jpg"),
        media.png_alpha(folder / "alpha.png"),
        media.png_palette(folder / "palette.png"),
        media.png_16bit(folder / "deep.png"),
        media.png_animated(folder / "animated.png"),
        media.webp(folder / "still.webp"),
        media.webp_animated(folder / "animated.webp"),
        media.gif(folder / "still.gif"),
        media.gif_animated(folder / "animated.gif"),
        media.video_mp4(folder / "film.mp4", seconds=0.3),
        media.video_mp4(folder / "turned.mp4", seconds=0.3, rotation=90, faststart=False, audio=False),
        media.video_fragmented(folder / "fragmented.mp4", seconds=0.3),
        media.video_mov(folder / "film.mov", seconds=0.3),
        media.video_webm(folder / "film.webm", seconds=0.3),
        media.video_webm(folder / "live.webm", seconds=0.3, live=True, codec="libvpx-vp9"),
    ]
    return {path.name: path.read_bytes() for path in written}
