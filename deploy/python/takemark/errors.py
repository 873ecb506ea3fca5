"""The error of a failed call, and how it is read from a response."""

import json
import math
import time
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any

_TRANSIENT_STATUSES = frozenset({408, 429, 500, 502, 503, 504})

_CODES = {
    403: "forbidden",
    404: "not_found",
    409: "conflict",
    411: "length_required",
    413: "payload_too_large",
    429: "rate_limited",
    503: "unavailable",
}

_LONGEST_TEXT = 1000


class TakemarkError(Exception):
    """A failed call.

    `code` is a code of the service, or one of the client: `connection_failed`, `tls_failed`, `timed_out`,
    `bad_response`, `source_failed`, `rotation_unfinished`. Treat an unknown code by the class of its status.
    The message contains neither the key nor the address of a slot.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int | None = None,
        reason: str | None = None,
        limit: str | None = None,
        review_id: str | None = None,
        request_id: str | None = None,
        retry_after: int | None = None,
        body: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        """The HTTP status, or None without a response."""
        self.reason = reason
        """The precise reason, if the service sends one."""
        self.limit = limit
        """The exceeded limit, with the code `rate_limited`."""
        self.review_id = review_id
        """The existing unresolved review, with the reason `review_exists`."""
        self.request_id = request_id
        """The request id. Quote it in problem reports."""
        self.retry_after = retry_after
        """The seconds that the service asks to wait."""
        self.body = body or {}
        """The members of the response, with those that this version does not know."""

    @property
    def transient(self) -> bool:
        """True if the same call may succeed later. It does not say whether a repeated call is safe."""
        if self.status is not None:
            return self.status in _TRANSIENT_STATUSES
        return self.code in ("connection_failed", "timed_out")


def error_of(status: int, headers: Message, body: bytes) -> TakemarkError:
    """Returns the error of a response without success. The body may be the page of a proxy."""
    members = _object_of(body)
    known = _CODES.get(status)
    if known is None:
        known = "internal" if status >= 500 else "invalid_request" if status >= 400 else "bad_response"
    return TakemarkError(
        _text(members, "code") or known,
        _text(members, "error") or f"the service responded with the status {status}",
        status=status,
        reason=_text(members, "reason"),
        limit=_text(members, "limit"),
        review_id=_text(members, "reviewId"),
        request_id=headers.get("X-Request-Id"),
        retry_after=_retry_after(headers),
        body=members,
    )


def _object_of(body: bytes) -> dict[str, Any]:
    try:
        parsed: Any = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _text(members: dict[str, Any], name: str) -> str | None:
    value = members.get(name)
    return value[:_LONGEST_TEXT] if isinstance(value, str) and value else None


def _retry_after(headers: Message) -> int | None:
    """Returns the seconds of a `Retry-After`, which is a number or a date.

    A date is compared with the sender's `Date`, because the clock of this machine may differ.
    """
    value = headers.get("Retry-After")
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        # A number of more digits is longer than every wait, and costs time to parse.
        return int(value[:15])
    until = _time_of(value)
    sent = _time_of(headers.get("Date", ""))
    return None if until is None else max(0, math.ceil(until - (time.time() if sent is None else sent)))


def _time_of(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None
