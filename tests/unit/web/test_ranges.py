"""Which bytes a Range header asks for."""

import pytest

from socialpub.web.http import files
from socialpub.web.http.files import ByteRange

WHOLE = ByteRange(0, 100, False)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"bytes=0-0", ByteRange(0, 1, True)),
        (b"bytes=0-99", ByteRange(0, 100, True)),
        (b"bytes=10-19", ByteRange(10, 20, True)),
        (b"bytes=90-", ByteRange(90, 100, True)),
        (b"bytes=90-1000", ByteRange(90, 100, True)),
        (b"bytes=-10", ByteRange(90, 100, True)),
        (b"bytes=-1000", ByteRange(0, 100, True)),
        (b"Bytes = 5 - 6", ByteRange(5, 7, True)),
    ],
)
def test_one_range_is_a_part(header, expected):
    assert files.parse_range(header, 100) == expected


@pytest.mark.parametrize("header", [b"bytes=100-", b"bytes=100-200", b"bytes=-0"])
def test_a_range_outside_of_the_file_is_none(header):
    assert files.parse_range(header, 100) is None


@pytest.mark.parametrize(
    "header", [None, b"", b"bytes=", b"bytes=-", b"bytes=5", b"bytes=9-1", b"bytes=a-b", b"lines=1-2", b"bytes=0-1,5-6"]
)
def test_several_ranges_other_units_and_nonsense_mean_the_whole_file(header):
    assert files.parse_range(header, 100) == WHOLE


def test_an_empty_file_has_no_part():
    assert files.parse_range(b"bytes=0-", 0) is None
    assert files.parse_range(None, 0) == ByteRange(0, 0, False)
