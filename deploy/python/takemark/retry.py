"""Repeats calls that failed for now."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from .errors import TakemarkError

FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 30.0

Result = TypeVar("Result")


def retrying(
    call: Callable[[], Result], attempts: int, repeatable: Callable[[TakemarkError], bool]
) -> Result:
    """Runs a call until it succeeds, fails for good, or has used its attempts."""
    attempt = 1
    while True:
        try:
            return call()
        except TakemarkError as error:
            pause = _pause_after(error, attempt)
            if attempt >= attempts or pause is None or not repeatable(error):
                raise
        time.sleep(pause)
        attempt += 1


def _pause_after(error: TakemarkError, attempt: int) -> float | None:
    """Returns the seconds until the next attempt, or None if the service asks for too long a pause.

    `Retry-After` is a lower bound. A random part is added, so that many clients do not return at once.
    """
    backoff = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * (1 << (attempt - 1)))
    if error.retry_after is None:
        return backoff * random.uniform(0.5, 1)
    if error.retry_after > LONGEST_PAUSE_SECONDS:
        return None
    return error.retry_after + backoff * random.random()
