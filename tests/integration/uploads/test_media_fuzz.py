"""An upload of a damaged file is verified or refused, and leaves no other file."""

from pathlib import Path

import pytest

from tests.endurance.media_fuzz.installed import web_process
from tests.endurance.media_fuzz.run import MediaFuzz

pytestmark = pytest.mark.endurance

FILES, SEED = 500, 20_261_122


def test_damaged_files_are_verified_or_refused_and_leave_nothing_behind(tmp_path: Path) -> None:
    with web_process(tmp_path) as (installation, web):
        report = MediaFuzz(installation, web, SEED, tmp_path / "kept").play(FILES)
    print(report.table())
    assert report.violations == []
    assert sum(report.answers.values()) == FILES
    assert report.verified > FILES / 20, "what is damaged too much shows nothing of the decoders"
