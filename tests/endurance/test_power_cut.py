"""After a power cut every acknowledged post and upload is there, and nothing goes out twice."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.endurance

ROOT = Path(__file__).parent.parent.parent
MOUNT = 'dd if=/dev/zero of="$0" bs=1M count=8 && mkfs.ext4 -q -F "$0" && mount -o loop "$0" /mnt'


@pytest.fixture
def a_machine_that_mounts_images(tmp_path: Path) -> None:
    tried = subprocess.run(["unshare", "-m", "sh", "-c", MOUNT, str(tmp_path / "image")], capture_output=True)
    if tried.returncode != 0:
        pytest.skip("an image cannot be mounted here (root, mkfs.ext4, loop devices and unshare -m are needed)")


@pytest.mark.usefixtures("a_machine_that_mounts_images")
def test_what_was_acknowledged_is_on_the_disk_at_every_moment() -> None:
    done = subprocess.run(
        ["unshare", "-m", sys.executable, "-m", "tests.endurance.power_cut", "--captures", "15", "--lives", "2"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-4000:]}"
    assert "power cuts 1" in done.stdout, done.stdout
