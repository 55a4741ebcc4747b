"""Confines a decoder's process after its decoders are loaded: it can read one file, write one file, and compute.

If a hostile file takes over a decoder, Landlock denies every other file, and a seccomp filter denies sockets, programs,
child processes, namespaces, and calls about other processes. Neither requires a privilege. Numbers and structures are
from `uapi/linux/landlock.h`, `seccomp.h` and `audit.h`, because libraries do not have functions for them.
"""

import contextlib
import ctypes
import os
import struct
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

LANDLOCK, SECCOMP = "Landlock", "seccomp"

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""The same on every architecture."""
_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE_TO_MAKE_SYM, _REFER, _TRUNCATE, _IOCTL_DEV = 0x1FFF, 1 << 13, 1 << 14, 1 << 15
_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_BIND_AND_CONNECT_TCP = 0b11
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11

_PR_SET_NO_NEW_PRIVS = 38
_SET_MODE_FILTER, _ALL_THREADS = 1, 1
_LOAD, _EQUAL, _AT_LEAST, _HAS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE, _MISSING = 0x7FFF0000, 0x00050001, 0x00050026
"""`_REFUSE` is the error EPERM, `_MISSING` is ENOSYS."""
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
"""Offsets in the data of a call."""
_X32 = 0x40000000
"""On x86-64, calls of the x32 interface begin here. Decoders do not use them."""

_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")

_ARCHITECTURES = {"x86_64": (0xC000003E, 317, 0), "aarch64": (0xC00000B7, 277, 1)}
"""The audit number, the number of `seccomp`, and the column of `_REFUSED`."""
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    # Sockets, including sockets of io_uring, and programs.
    "socket": (41, 198), "socketpair": (53, 199), "io_uring_setup": (425, 425),
    "execve": (59, 221), "execveat": (322, 281),
    # Other processes. Landlock denies signals since Linux 6.12.
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119), "sched_setaffinity": (203, 122), "sched_setattr": (314, 274),
    "migrate_pages": (256, 238), "move_pages": (279, 239), "fork": (57, None), "vfork": (58, None),
    # Namespaces and mounts, the kernel's keys, page faults, shared memory, queues, and watches of files.
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "mount_setattr": (442, 442), "open_by_handle_at": (304, 265), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "userfaultfd": (323, 282), "bpf": (321, 280), "perf_event_open": (298, 241),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "shmdt": (67, 197), "semget": (64, 190),
    "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
    "inotify_init": (253, None), "inotify_init1": (294, 26), "inotify_add_watch": (254, 27),
    "inotify_rm_watch": (255, 28), "fanotify_init": (300, 262),
    # Calls with a path. Landlock denies `truncate` since Linux 6.2, and does not deny the others.
    "truncate": (76, 45), "chmod": (90, None), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None),
    "lchown": (94, None), "fchownat": (260, 54), "utime": (132, None), "utimes": (235, None), "futimesat": (261, None),
    "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "removexattrat": (466, 466),
}  # fmt: skip

_CLONE3 = (435, 435)
"""The filter cannot read its flags. Without it, libraries start threads with `clone`."""
_CLONE, _CLONE_THREAD = (56, 220), 0x10000
_PRLIMIT = (302, 261)


def confine(source: Path, target: Path | None) -> list[str]:
    """Confine this process to reading `source`, writing the existing file `target`, and running its code.

    This applies to the only thread and all later threads, without undo. Return the features that this kernel lacks,
    among `LANDLOCK` and `SECCOMP`.
    """
    lacks = []
    rules = [(source, _READ_FILE)]
    # The kernel rejects a rule for a file with a right for folders.
    rules += [(path, _READ_FILE | _READ_DIR if path.is_dir() else _READ_FILE) for path in _code()]
    if target is not None:
        rules.append((target, _WRITE_FILE | _TRUNCATE))
    with contextlib.ExitStack() as stack:
        opened = []
        for path, rights in rules:
            with contextlib.suppress(OSError):
                opened.append((stack.enter_context(_open_path(path)), rights))
        try:
            _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            _restrict_files(opened)
        except OSError:
            lacks.append(LANDLOCK)
    try:
        _filter_calls()
    except OSError:
        lacks.append(SECCOMP)
    return lacks


def _code() -> Iterator[Path]:
    """Return the folders of Python modules and system libraries, some of which are loaded later."""
    package = Path(__file__).parents[2]
    # A checkout may contain data next to the package.
    names = {*sys.path} - {str(package.parent)} | {str(package)}
    names |= {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    # Some installers link packages, and the kernel checks the target of a link.
    packages = [module for name, module in sys.modules.items() if "." not in name]
    names |= {os.path.realpath(folder) for module in packages for folder in getattr(module, "__path__", ())}
    return (Path(name) for name in (*names, *_LIBRARIES) if Path(name).exists())


@contextlib.contextmanager
def _open_path(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        yield file
    finally:
        os.close(file)


def _restrict_files(rules: Iterable[tuple[int, int]]) -> None:
    version = _syscall(_CREATE_RULESET, None, 0, _VERSION)
    handled = _EXECUTE_TO_MAKE_SYM
    handled |= sum(right for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV)) if version >= since)
    handled_tcp = _BIND_AND_CONNECT_TCP if version >= 4 else 0
    scoped = _ABSTRACT_SOCKETS_AND_SIGNALS if version >= 6 else 0
    # An older kernel rejects a structure with unknown fields, unless they are zero.
    wanted = struct.pack("=QQQ", handled, handled_tcp, scoped)
    ruleset = _syscall(_CREATE_RULESET, wanted, len(wanted), 0)
    try:
        for file, rights in rules:
            _syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights & handled, file), 0)
        _syscall(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _filter_calls() -> None:
    if os.uname().machine not in _ARCHITECTURES or sys.maxsize < 2**32:
        raise OSError("No filter is known for this architecture.")
    audit_number, seccomp, column = _ARCHITECTURES[os.uname().machine]
    refused = [number for numbers in _REFUSED.values() if (number := numbers[column]) is not None]
    # Each line: operation, lines to skip if true, lines to skip if false, operand.
    end = [
        (_EQUAL, 8, 0, _CLONE3[column]),
        (_EQUAL, 1, 0, _PRLIMIT[column]),
        (_EQUAL, 2, 4, _CLONE[column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_EQUAL, 2, 3, 0),  # only its own limits
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_HAS, 0, 1, _CLONE_THREAD),  # only threads
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _MISSING),
    ]
    refusal = len(refused) + 8  # lines after the first comparison of a number
    lines = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 0, refusal + 2, audit_number), (_LOAD, 0, 0, _NUMBER)]
    lines.append((_AT_LEAST, refusal, 0, _X32))
    lines += [(_EQUAL, refusal - place - 1, 0, number) for place, number in enumerate(refused)]
    lines += end
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
    _syscall(seccomp, _SET_MODE_FILTER, _ALL_THREADS, struct.pack("@HP", len(lines), ctypes.addressof(program)))


def _syscall(number: int, *arguments: int | bytes | None) -> int:
    return _call("syscall", number, *arguments)


def _call(name: str, *arguments: int | bytes | None) -> int:
    passed = [
        ctypes.c_long(argument) if isinstance(argument, int) else ctypes.c_char_p(argument) for argument in arguments
    ]
    result = int(getattr(ctypes.CDLL(None, use_errno=True), name)(*passed))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
