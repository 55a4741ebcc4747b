"""The accepted types and their names."""

from socialpub.media.types import canonical_type, media_kind


def test_a_type_has_one_canonical_name_and_a_kind() -> None:
    assert canonical_type("Image/JPG") == "image/jpeg"
    assert canonical_type("image/tiff") is None
    assert media_kind("video/webm") == "video"
