"""Reads files, and builds the multipart form that sends them."""

import io
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from .errors import TakemarkError

CHUNK_BYTES = 262_144
MAX_SIDECAR_BYTES = 32_768

AudioFile = str | os.PathLike[str] | bytes | BinaryIO
"""A path, bytes, or a binary file object that can seek."""


@dataclass(frozen=True)
class Audio:
    """A file from its position `start`. It can be read again for a repeated attempt."""

    file: BinaryIO
    start: int
    size: int

    def chunks(self) -> Iterator[bytes]:
        """Yields exactly the announced number of bytes, in chunks."""
        left = self.size
        try:
            self.file.seek(self.start)
            while left > 0:
                chunk = self.file.read(min(CHUNK_BYTES, left))
                if not chunk:
                    raise TakemarkError("source_failed", "the file became shorter while it was sent")
                left -= len(chunk)
                yield chunk
        except OSError as error:
            raise TakemarkError("source_failed", f"the file could not be read: {error.strerror}") from error


@contextmanager
def opened(file: AudioFile) -> Iterator[Audio]:
    """Opens a path, or takes a file object from its present position. Errors are those of Python."""
    if isinstance(file, bytes):
        file = io.BytesIO(file)
    if isinstance(file, (str, os.PathLike)):
        _check_regular(file)
        with open(file, "rb") as own:
            yield Audio(own, 0, os.fstat(own.fileno()).st_size)
    else:
        start = file.tell()
        yield Audio(file, start, file.seek(0, os.SEEK_END) - start)


def sidecar_bytes(sidecar: str | os.PathLike[str] | bytes) -> bytes:
    """Reads a whole sidecar. A longer file than the service accepts is not read to its end."""
    if not isinstance(sidecar, bytes):
        _check_regular(sidecar)
        with open(sidecar, "rb") as file:
            sidecar = file.read(MAX_SIDECAR_BYTES + 1)
    if len(sidecar) > MAX_SIDECAR_BYTES:
        raise TakemarkError("source_failed", "the sidecar is larger than 32 KiB")
    return sidecar


def _check_regular(path: str | os.PathLike[str]) -> None:
    """Raises an error for a pipe or a device, which has no length and could block forever."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise TakemarkError("source_failed", "not a regular file")


class Form:
    """A multipart form (RFC 7578) that is sent while its file is read.

    The service needs the fields and the sidecar first, and the file last. The file is always named `audio`,
    because its real name may contain a creator's name.
    """

    def __init__(self, audio: Audio, fields: Mapping[str, str], sidecar: bytes | None = None) -> None:
        boundary = f"takemark-{secrets.token_hex(18)}"
        parts = [
            _head(boundary, f'name="{_escaped(name)}"') + b"\r\n" + value.encode() + b"\r\n"
            for name, value in fields.items()
        ]
        if sidecar is not None:
            parts += [_head(boundary, 'name="sidecar"; filename="sidecar"'), _BYTES, sidecar, b"\r\n"]
        parts += [_head(boundary, 'name="file"; filename="audio"'), _BYTES]
        self._audio = audio
        self._before = b"".join(parts)
        self._after = f"\r\n--{boundary}--\r\n".encode()
        self.headers = {
            "Content-Type": f"multipart/form-data; boundary={boundary}",
            "Content-Length": str(len(self._before) + audio.size + len(self._after)),
        }

    def __iter__(self) -> Iterator[bytes]:
        yield self._before
        yield from self._audio.chunks()
        yield self._after


_BYTES = b"Content-Type: application/octet-stream\r\n\r\n"


def _head(boundary: str, disposition: str) -> bytes:
    return f"--{boundary}\r\nContent-Disposition: form-data; {disposition}\r\n".encode()


def _escaped(name: str) -> str:
    """Escapes a name as browsers do (WHATWG HTML, multipart/form-data encoding algorithm)."""
    return name.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")
