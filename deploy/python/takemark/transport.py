"""Sends one call over a connection of its own: addresses, time limits, and the bounds of a response."""

import http.client
import ipaddress
import json
import logging
import platform
import ssl
import time
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from .errors import TakemarkError, error_of
from .version import VERSION

MAX_RESPONSE_BYTES = 16 * 1024 * 1024
MAX_ERROR_BYTES = 65_536
CHUNK_BYTES = 65_536

logger = logging.getLogger("takemark")


def address_of(text: str) -> SplitResult:
    """Returns a parsed address, or raises ValueError."""
    address = urlsplit(text)
    if address.scheme not in ("http", "https") or not address.hostname or address.username is not None:
        raise ValueError("the address must start with http:// or https:// and name a host")
    _ = address.port  # An invalid port raises here, not in the first call.
    return address


def is_plain(address: SplitResult) -> bool:
    """Returns True for plain HTTP to another machine, which exposes what is sent."""
    return address.scheme == "http" and not _is_loopback(address.hostname or "")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Transport:
    """Sends calls. It never follows a redirect, because the key would go along. Threads can share it."""

    def __init__(
        self, *, timeout: float, ca_file: str | None, proxy: str | None, user_agent: str | None
    ) -> None:
        self._timeout = timeout
        self._tls = ssl.create_default_context(cafile=ca_file)
        self._proxy = None if proxy is None else address_of(proxy.replace(_userinfo(proxy), "", 1))
        self._proxy_headers = {} if proxy is None else _proxy_headers(_userinfo(proxy))
        own = f"takemark-python/{VERSION} python/{platform.python_version()}"
        self._user_agent = own if user_agent is None else f"{user_agent} {own}"

    def json(
        self,
        operation: str,
        method: str,
        address: SplitResult,
        headers: Mapping[str, str],
        body: bytes | Iterable[bytes] | None = None,
    ) -> dict[str, Any]:
        """Returns the JSON object of a successful response."""
        with self._response(operation, method, address, headers, body) as response:
            read = self._whole(response, MAX_RESPONSE_BYTES)
            request_id = response.headers.get("X-Request-Id")
            status = response.status
        try:
            value = json.loads(read)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise TakemarkError(
                "bad_response", "the response is not a JSON object", status=status, request_id=request_id
            )
        return value

    @contextmanager
    def stream(
        self, operation: str, address: SplitResult, headers: Mapping[str, str]
    ) -> Iterator[tuple[Message, Iterator[bytes]]]:
        """Opens a response whose body is read in chunks."""
        with self._response(operation, "GET", address, headers, None) as response:
            yield response.headers, _chunks(response)

    @contextmanager
    def _response(
        self,
        operation: str,
        method: str,
        address: SplitResult,
        headers: Mapping[str, str],
        body: bytes | Iterable[bytes] | None,
    ) -> Iterator[http.client.HTTPResponse]:
        started = time.monotonic()
        outcome = "no response"
        connection = self._connection(address)
        target = f"{address.path or '/'}{f'?{address.query}' if address.query else ''}"
        try:
            with _network_errors():
                connection.connect()
                try:
                    connection.request(method, target, body, {**headers, "User-Agent": self._user_agent})
                except (BrokenPipeError, ConnectionResetError):
                    # The service may have refused the call before the end of the body. Its response says why.
                    pass
                response = connection.getresponse()
            outcome = f"{response.status}, request id {response.headers.get('X-Request-Id')}"
            if not 200 <= response.status <= 299:
                raise error_of(response.status, response.headers, self._whole(response, MAX_ERROR_BYTES))
            _log_deprecation(operation, response.headers)
            yield response
        finally:
            connection.close()
            logger.debug("%s: %s after %.3f s", operation, outcome, time.monotonic() - started)

    def _connection(self, address: SplitResult) -> http.client.HTTPConnection:
        host, port = address.hostname or "", address.port
        if address.scheme == "http":
            # Most systems try ::1 first, where another user of this machine could listen.
            return http.client.HTTPConnection(
                "127.0.0.1" if host == "localhost" else host, port, timeout=self._timeout
            )
        if self._proxy is None:
            return http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._tls)
        tunnel = http.client.HTTPSConnection(
            self._proxy.hostname or "", self._proxy.port or 3128, timeout=self._timeout, context=self._tls
        )
        tunnel.set_tunnel(host, port or 443, self._proxy_headers)
        return tunnel

    def _whole(self, response: http.client.HTTPResponse, limit: int) -> bytes:
        """Reads a body of at most `limit` bytes, within the time limit."""
        deadline = time.monotonic() + self._timeout
        read = bytearray()
        for chunk in _chunks(response):
            read += chunk
            if len(read) > limit:
                raise TakemarkError("bad_response", "the response is too large", status=response.status)
            if time.monotonic() > deadline:
                raise TakemarkError("timed_out", "the response was not complete in time")
        return bytes(read)


def _chunks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    while True:
        with _network_errors():
            chunk = response.read1(CHUNK_BYTES)
        if chunk:
            yield chunk
            continue
        if response.length:
            raise TakemarkError("connection_failed", "the connection closed before the end of the response")
        return


@contextmanager
def _network_errors() -> Iterator[None]:
    """Turns the errors of sockets and of the protocol into errors of the client."""
    try:
        yield
    except TimeoutError as error:
        raise TakemarkError("timed_out", "the call made no progress in time") from error
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError) as error:
        raise TakemarkError("connection_failed", "the connection closed") from error
    except ssl.SSLError as error:
        raise TakemarkError("tls_failed", f"no secure connection: {error.reason}") from error
    except OSError as error:
        raise TakemarkError("connection_failed", f"the connection failed: {error.strerror or error}") from error
    except http.client.HTTPException as error:
        raise TakemarkError("connection_failed", f"no HTTP response: {type(error).__name__}") from error


def _log_deprecation(operation: str, headers: Message) -> None:
    """Warns if the response announces that a part of the contract ends (RFC 9745, RFC 8594)."""
    if "Deprecation" in headers or "Sunset" in headers:
        logger.warning("%s uses what the service will remove, after %s", operation, headers.get("Sunset"))


def _userinfo(proxy: str) -> str:
    """Returns `name:password@` of the address of a proxy, or an empty string."""
    authority = proxy.partition("://")[2].partition("/")[0]
    return authority[: authority.rfind("@") + 1]


def _proxy_headers(userinfo: str) -> dict[str, str]:
    if not userinfo:
        return {}
    credentials = b64encode(unquote(userinfo[:-1]).encode()).decode()
    return {"Proxy-Authorization": f"Basic {credentials}"}
