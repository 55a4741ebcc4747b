"""How many heaps glibc keeps for the threads of this process.

It makes one for each thread, up to eight for each core, and what was freed in one is no use to another: a worker, with
its threads for every network, grew by a quarter of a megabyte a minute for as long as anybody looked. With two it stays
as it is. Python runs one thread at a time, so that nobody waits for a heap.
"""

MOST = 2
_M_ARENA_MAX = -8


def limit() -> bool:
    """Keep to `MOST` heaps; comes before threads are started. False where that cannot be had, which is no fault."""
    try:
        # It asks for memory that can be run, which a confined process may be refused.
        import ctypes

        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    except (ImportError, MemoryError, OSError):
        return False
    return mallopt is not None and mallopt(_M_ARENA_MAX, MOST) == 1
