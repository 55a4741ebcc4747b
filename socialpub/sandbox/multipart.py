"""Multipart bodies, read part by part as they arrive."""

from dataclasses import dataclass
from typing import Protocol

from python_multipart.multipart import MultipartParser, parse_options_header


@dataclass(frozen=True, slots=True)
class PartHeader:
    name: str
    filename: str | None
    """None for a plain field."""
    content_type: str | None


@dataclass(frozen=True, slots=True)
class BodyPart:
    """One part of a body that was read whole."""

    header: PartHeader
    data: bytes


class PartReceiver(Protocol):
    """What the parts are handed to, in their order."""

    def begin_part(self, header: PartHeader) -> None: ...

    def part_data(self, data: bytes) -> None: ...

    def end_part(self) -> None: ...


class MultipartReader:
    """Takes a body in chunks of any size. ValueError when it is no multipart body, or a broken one."""

    def __init__(self, content_type: str, receiver: PartReceiver) -> None:
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if kind != b"multipart/form-data" or not boundary:
            raise ValueError("no multipart form")
        self.ended = False
        """The closing boundary has come."""
        self._receiver = receiver
        self._name, self._value = bytearray(), bytearray()
        self._headers: dict[str, bytes] = {}
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._headers.clear,
                "on_header_field": lambda raw, start, stop: self._name.extend(raw[start:stop]),
                "on_header_value": lambda raw, start, stop: self._value.extend(raw[start:stop]),
                "on_header_end": self._end_header,
                "on_headers_finished": self._end_headers,
                "on_part_data": lambda raw, start, stop: receiver.part_data(bytes(raw[start:stop])),
                "on_part_end": receiver.end_part,
                "on_end": self._end,
            },
        )

    def write(self, chunk: bytes) -> None:
        self._parser.write(chunk)

    def _end_header(self) -> None:
        self._headers[self._name.decode("latin-1").lower()] = bytes(self._value)
        self._name.clear()
        self._value.clear()

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._headers.get("content-disposition", b""))
        filename, kind = options.get(b"filename"), self._headers.get("content-type")
        self._receiver.begin_part(
            PartHeader(
                options.get(b"name", b"").decode("utf-8", "replace"),
                None if filename is None else filename.decode("utf-8", "replace"),
                None if kind is None else kind.decode("latin-1"),
            )
        )

    def _end(self) -> None:
        self.ended = True


class _Collector:
    def __init__(self) -> None:
        self.parts: list[BodyPart] = []
        self._header = PartHeader("", None, None)
        self._data = bytearray()

    def begin_part(self, header: PartHeader) -> None:
        self._header = header
        self._data.clear()

    def part_data(self, data: bytes) -> None:
        self._data.extend(data)

    def end_part(self) -> None:
        self.parts.append(BodyPart(self._header, bytes(self._data)))


def read_parts(content_type: str, body: bytes) -> list[BodyPart]:
    """The parts of a whole body. ValueError when it is no multipart body, is broken or cut off."""
    collector = _Collector()
    reader = MultipartReader(content_type, collector)
    reader.write(body)
    if not reader.ended:
        raise ValueError("the multipart body is cut off")
    return collector.parts
