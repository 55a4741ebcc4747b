import pytest

from socialpub.core import units


@pytest.mark.parametrize(
    ("size_bytes", "written"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (16 << 10, "16 KiB (16384 bytes)"),
        (157_286_400, "150 MiB (157286400 bytes)"),
        (1_572_865, "1.5 MiB (1572865 bytes)"),
        (1 << 32, "4 GiB (4294967296 bytes)"),
    ],
)
def test_a_size_has_its_unit_and_its_exact_number(size_bytes: int, written: str) -> None:
    assert units.size(size_bytes) == written
