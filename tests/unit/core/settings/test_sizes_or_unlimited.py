"""A quota: a size, or none."""

import pytest


@pytest.mark.parametrize(
    ("text", "size"), [('"50GB"', 50_000_000_000), ('"1GiB"', 1 << 30), ("5000", 5000), ('"unlimited"', None)]
)
def test_a_quota_is_a_size_or_unlimited(configured, text, size):
    assert configured(f"[storage]\nquota = {text}").storage.quota == size


def test_without_a_quota_there_is_none(configured):
    assert configured("").storage.quota is None
    assert configured("", SOCIALPUB_STORAGE__QUOTA="2MB").storage.quota == 2_000_000


@pytest.mark.parametrize("wrong", ['"much"', '"forever"', "true", "1.5", '"-5GB"', "-1"])
def test_anything_else_is_refused_and_told_the_default(mistakes, wrong):
    said = mistakes(f"[storage]\nquota = {wrong}")
    assert "storage.quota" in said
    assert '(default "unlimited")' in said
