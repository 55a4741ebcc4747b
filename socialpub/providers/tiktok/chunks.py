"""How a video is cut into chunks. Pure."""

from dataclasses import dataclass

from socialpub.providers.tiktok import limits


@dataclass(frozen=True, slots=True)
class Chunks:
    """Sizes in bytes. All chunks have `chunk_bytes`, the last one takes the remainder on top."""

    total_bytes: int
    chunk_bytes: int
    count: int

    def slice(self, index: int) -> tuple[int, int]:
        """Offset and length of one chunk."""
        offset = index * self.chunk_bytes
        return offset, self.total_bytes - offset if index == self.count - 1 else self.chunk_bytes

    def content_range(self, index: int) -> str:
        offset, length = self.slice(index)
        return f"bytes {offset}-{offset + length - 1}/{self.total_bytes}"

    def next_after(self, received_bytes: int) -> int | None:
        """The chunk that follows on so many bytes (`count`: none is missing). None: they end inside a chunk."""
        if received_bytes >= self.total_bytes:
            return self.count
        index, inside = divmod(received_bytes, self.chunk_bytes)
        return index if inside == 0 and index < self.count else None


def plan(total_bytes: int) -> Chunks:
    """One chunk while that is allowed, else TikTok's own example size; the count is rounded down."""
    if total_bytes <= limits.ONE_CHUNK_BYTES:
        return Chunks(total_bytes, total_bytes, 1)
    return Chunks(total_bytes, limits.CHUNK_BYTES, total_bytes // limits.CHUNK_BYTES)
