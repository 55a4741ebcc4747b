"""The sections: what their values may be, and values that depend on each other."""

from datetime import timedelta


def test_sizes_are_numbers_or_text_with_a_unit_and_go_downwards_only(configured, mistakes):
    s = configured('[uploads]\nmax_image_bytes = "16MiB"\nmax_video_bytes = "100MB"\n[health]\ndisk_floor_bytes = 0')
    assert s.uploads.max_image_bytes == 16 * 1024 * 1024
    assert s.uploads.max_video_bytes == 100_000_000
    assert s.health.disk_floor_bytes == 0
    assert '"32MiB"' in mistakes('[uploads]\nmax_image_bytes = "33MiB"')
    assert "157286400" in mistakes("[uploads]\nmax_video_bytes = 157286401")
    assert "max_image_pixels" in mistakes("[uploads]\nmax_image_pixels = 100000001")
    for wrong in ("true", "-5", '"x"', "1.5", "0"):
        assert "uploads.max_image_bytes" in mistakes(f"[uploads]\nmax_image_bytes = {wrong}")


def test_for_ever_can_be_said_in_words(configured):
    assert configured('[media]\nkeep_after_settled = "forever"').media.keep_after_settled is None
    assert configured('[media]\nkeep_after_settled = "90d"').media.keep_after_settled == timedelta(days=90)


def test_an_upload_url_that_outlives_its_reservation_is_refused_even_when_only_one_of_them_was_written(mistakes):
    assert "uploads.reservation_lifetime" in mistakes('[uploads]\nurl_lifetime = "25h"')
    assert "uploads.reservation_lifetime" in mistakes('[uploads]\nreservation_lifetime = "30m"')


def test_all_frames_together_may_not_have_fewer_pixels_than_one(mistakes):
    assert "lower both" in mistakes("[uploads]\nmax_image_total_pixels = 1000")
