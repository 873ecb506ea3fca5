"""Keeps a rotation of the key in a file, so that neither a crash nor a lost response loses the new secret."""

import hashlib
import json
import os
import tempfile
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from .errors import TakemarkError
from .types import RotatedKey

REPLAY_SECONDS = 24 * 3600
"""For this long the service repeats its response to the same Idempotency-Key (rule 4.9)."""


def rotate(
    path: str | os.PathLike[str], api_key: str, call: Callable[[str], dict[str, Any]], now: float
) -> RotatedKey:
    """Starts a rotation, or continues the one that the file holds."""
    calling_key = hashlib.sha256(api_key.encode()).hexdigest()[:32]
    saved = _load(path)
    if saved is not None and saved["callingKey"] != calling_key:
        _refuse_to_forget(saved, api_key, now)
        saved = None
    if saved is None:
        saved = {"idempotencyKey": str(uuid.uuid4()), "callingKey": calling_key, "startedAt": int(now)}
        _save(path, saved)
    if saved.get("rotated") is None:
        rotated = call(saved["idempotencyKey"])
        if not isinstance(rotated.get("apiKey"), str) or not isinstance(rotated.get("keyId"), str):
            raise TakemarkError("bad_response", "the response is not a rotated key")
        saved["rotated"] = rotated
        _save(path, saved)
    return cast(RotatedKey, saved["rotated"])


def _refuse_to_forget(saved: dict[str, Any], api_key: str, now: float) -> None:
    """Raises an error unless the rotation in the file is in use or expired."""
    rotated = saved.get("rotated")
    if rotated is None and now < saved["startedAt"] + REPLAY_SECONDS:
        raise TakemarkError("rotation_unfinished", "the file holds an unfinished rotation of another key")
    if rotated is not None and rotated["apiKey"] != api_key:
        raise TakemarkError("rotation_unfinished", "the file holds the new secret of another key")


def _load(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    try:
        with open(path, encoding="utf-8") as file:
            return cast(dict[str, Any], json.load(file))
    except FileNotFoundError:
        return None


def _save(path: str | os.PathLike[str], state: dict[str, Any]) -> None:
    """Replaces the file, readable only by its owner, so that a crash leaves the old or the new one."""
    target = os.fspath(path)
    # A fresh file: one that exists might be a link, or be open to others.
    descriptor, fresh = tempfile.mkstemp(dir=os.path.dirname(target) or ".")
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.remove(fresh)
        raise
    if os.name == "posix":
        directory = os.open(os.path.dirname(target) or ".", os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
