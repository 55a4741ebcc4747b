"""The chunk plan of a file upload: what TikTok takes for one."""

GIB = 1024**3


def complaint(size: int, chunk_size: int, count: int, *, lenient_mib: bool) -> str:
    """Nothing when the plan is right. Sizes in bytes; `count` is the whole number of chunks in the file, and the last
    one takes the rest."""
    mega = 1024**2 if lenient_mib else 1_000_000
    if size <= 0 or chunk_size <= 0 or size > 4 * GIB:
        return "The chunk size is invalid"
    if not 1 <= count <= 1000 or count != size // chunk_size:
        return "The total chunk count is invalid"
    if count == 1:
        fits = chunk_size == size <= 64 * mega
    else:
        last = size - (count - 1) * chunk_size
        fits = 5 * mega <= chunk_size <= 64 * mega and last <= 128 * mega
    return "" if fits else "The chunk size is invalid"
