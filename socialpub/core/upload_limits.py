"""The largest files that the API promises to accept (spec section 8); the configuration can only lower them."""

MAX_IMAGE_BYTES = 32 * 1024 * 1024
MAX_IMAGE_PIXELS = 100_000_000
"""Pixels of one frame."""
MAX_IMAGE_TOTAL_PIXELS = 500_000_000
"""Pixels of all frames of an animation together."""
MAX_VIDEO_BYTES = 157_286_400
