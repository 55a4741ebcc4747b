"""What the machine has, and what a control group leaves of it."""

from pathlib import Path

from socialpub.core import machine

GIB = 1024**3


def lay(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_the_machine_says_what_it_has(tmp_path: Path) -> None:
    lay(tmp_path, **{"proc/meminfo": "MemTotal:        4194304 kB\nMemFree: 1 kB\n"})
    assert machine.memory_bytes(tmp_path) == 4 * GIB


def test_the_narrowest_group_counts(tmp_path: Path) -> None:
    lay(
        tmp_path,
        **{
            "proc/meminfo": "MemTotal:        4194304 kB\n",
            "proc/self/cgroup": "0::/system.slice/socialpub-web.service\n",
            "sys/fs/cgroup/system.slice/memory.max": f"{GIB}\n",
            "sys/fs/cgroup/system.slice/socialpub-web.service/memory.max": "max\n",
        },
    )
    assert machine.memory_bytes(tmp_path) == GIB


def test_the_limit_of_a_container_counts(tmp_path: Path) -> None:
    lay(
        tmp_path,
        **{
            "proc/meminfo": "MemTotal:        4194304 kB\n",
            "proc/self/cgroup": "4:cpu,memory:/docker/abc\n1:name=systemd:/\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{GIB}\n",
        },
    )
    assert machine.memory_bytes(tmp_path) == GIB


def test_where_nobody_says_little_is_assumed(tmp_path: Path) -> None:
    assert machine.memory_bytes(tmp_path) == 2 * GIB
    assert machine.memory_bytes() > 0
