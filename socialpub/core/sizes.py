"""Sizes as people read them: with their unit, and with the exact number that a program needs."""

_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def write(size_bytes: int) -> str:
    """`150 MiB (157286400 bytes)`; of less than a KiB only the bytes."""
    for unit_bytes, unit in _UNITS:
        if size_bytes >= unit_bytes:
            return f"{round(size_bytes / unit_bytes, 1):g} {unit} ({size_bytes} bytes)"
    return f"{size_bytes} bytes" if size_bytes != 1 else "1 byte"
