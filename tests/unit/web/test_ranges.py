"""Which bytes a Range header asks for."""

import pytest

from socialpub.web.ranges import Part, chosen

WHOLE = Part(0, 100, False)


@pytest.mark.parametrize(
    ("header", "part"),
    [
        (b"bytes=0-0", Part(0, 1, True)),
        (b"bytes=0-99", Part(0, 100, True)),
        (b"bytes=10-19", Part(10, 20, True)),
        (b"bytes=90-", Part(90, 100, True)),
        (b"bytes=90-1000", Part(90, 100, True)),
        (b"bytes=-10", Part(90, 100, True)),
        (b"bytes=-1000", Part(0, 100, True)),
        (b"Bytes = 5 - 6", Part(5, 7, True)),
    ],
)
def test_one_range_is_a_part(header, part):
    assert chosen(header, 100) == part


@pytest.mark.parametrize("header", [b"bytes=100-", b"bytes=100-200", b"bytes=-0"])
def test_a_range_outside_of_the_file_is_none(header):
    assert chosen(header, 100) is None


@pytest.mark.parametrize(
    "header", [None, b"", b"bytes=", b"bytes=-", b"bytes=5", b"bytes=9-1", b"bytes=a-b", b"lines=1-2", b"bytes=0-1,5-6"]
)
def test_several_ranges_other_units_and_nonsense_mean_the_whole_file(header):
    assert chosen(header, 100) == WHOLE


def test_an_empty_file_has_no_part():
    assert chosen(b"bytes=0-", 0) is None
    assert chosen(None, 0) == Part(0, 0, False)
