"""The client: keys, addresses, retries, and the calls that send or receive a file."""

import hashlib
import json
import os
import re
import time
import uuid
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal, cast
from urllib.parse import SplitResult, urlencode

from .errors import TakemarkError
from .form import Audio, AudioFile, Form, opened, sidecar_bytes
from .operations import Operations
from .retry import retrying
from .rotation import rotate
from .signing import Signer
from .transport import Transport, address_of, is_plain
from .types import Identification, RotatedKey, StoredUpload, UploadPurpose, UploadSlot, Verification, Verify

MAX_DOWNLOAD_BYTES = 4 * 1024**3

_VISIBLE = re.compile(r"[\x21-\x7e]+")
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_DIGEST = re.compile(r"(?:^|,)\s*sha-256=:([A-Za-z0-9+/]{43}=):")


class Client(Operations):
    """A client for the partner API. Threads can share it. A failed call raises `TakemarkError`.

    `base_url` is the address of the service, with or without `/v1`. Over plain HTTP the key goes only to this
    machine, unless `allow_plain_http` is true. `timeout` is the number of seconds that a call may make no
    progress. `attempts` is the number of times that a call is sent, which includes the first. `ca_file` has
    the certificates to trust instead of those of the system. `proxy` is the address of an HTTP proxy that
    tunnels HTTPS. The variables of the environment for proxies are not used. `user_agent` names your product.
    `signing_key` is the private key (Ed25519 or P-256, as PEM) for the public key of the API key. If it is set,
    every call is signed. It needs the package `cryptography`.

    A call is repeated only if it certainly had no effect or is safe to repeat. A call with an
    `idempotency_key` is safe to repeat. The client obeys `Retry-After` up to 30 seconds.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: float = 60.0,
        attempts: int = 4,
        ca_file: str | None = None,
        proxy: str | None = None,
        allow_plain_http: bool = False,
        user_agent: str | None = None,
        signing_key: str | bytes | None = None,
    ) -> None:
        base = address_of(base_url)
        if not allow_plain_http and is_plain(base):
            raise ValueError("plain HTTP to another machine would expose the key: use https://")
        if not _VISIBLE.fullmatch(api_key):
            raise ValueError("the key must be printable ASCII without spaces")
        if attempts < 1:
            raise ValueError("attempts must be at least 1")
        self._base = base._replace(path=re.sub(r"(/v1)?/*$", "", base.path), query="", fragment="")
        self._allow_plain_http = allow_plain_http
        self._attempts = attempts
        self.__api_key = api_key
        self._signer = None if signing_key is None else Signer(signing_key, api_key)
        self._transport = Transport(timeout=timeout, ca_file=ca_file, proxy=proxy, user_agent=user_agent)

    def verify_file(
        self, file: AudioFile, *, sidecar: str | os.PathLike[str] | bytes | None = None
    ) -> Verification:
        """Verifies a credentialed WAV or BWF file, or audio with its sidecar, in one call.

        Accept the file only if `accepted` is true. The file is sent while it is read, so memory use does not
        depend on its length. A repeated attempt is not charged again. A client that signs its calls uses an
        upload slot instead, because the signature of one call would cover the digest of the whole form.
        """
        # The sidecar is read first, so that a missing sidecar does not cost an upload.
        proof = None if sidecar is None else sidecar_bytes(sidecar)
        if self._signer is not None:
            request: Verify = {"uploadId": self.upload_file(file)["uploadId"]}
            if proof is not None:
                request["sidecar"] = b64encode(proof).decode()
            return self.verify(request)
        address = self._address(("v1", "verifications"))
        headers = {**self._headers(), "Idempotency-Key": str(uuid.uuid4())}
        with opened(file) as audio:

            def attempt() -> dict[str, Any]:
                form = Form(audio, {}, proof)
                return self._transport.json("verifyFile", "POST", address, {**headers, **form.headers}, form)

            return cast(Verification, _checked("verifyFile", self._repeated(attempt, _is_transient)))

    def identify_file(self, file: AudioFile) -> Identification:
        """Uploads a file, and finds the proofs that match it. It costs one unit of the quota."""
        return self.identify({"uploadId": self.upload_file(file, "identify")["uploadId"]})

    def upload_file(self, file: AudioFile, purpose: UploadPurpose = "verify") -> StoredUpload:
        """Uploads a file to a new slot. A failed attempt is repeated with another slot."""
        with opened(file) as audio:
            stored = self._repeated(lambda: self._upload_once(audio, purpose), _is_transient)
        return cast(StoredUpload, stored)

    def upload(self, slot: UploadSlot, file: AudioFile) -> StoredUpload:
        """Posts a file to a slot, once. After a failure the slot may be used up, so create a new slot."""
        with opened(file) as audio:
            return cast(StoredUpload, self._post(cast(dict[str, Any], slot), audio))

    def _upload_once(self, audio: Audio, purpose: UploadPurpose) -> dict[str, Any]:
        slot = self._once("createUpload", "POST", ("v1", "uploads"), body={"purpose": purpose})
        return self._post(slot, audio)

    def _post(self, slot: dict[str, Any], audio: Audio) -> dict[str, Any]:
        fields = slot.get("fields")
        if not isinstance(fields, dict) or not all(isinstance(value, str) for value in fields.values()):
            raise TakemarkError("bad_response", "the response is not an upload slot")
        form = Form(audio, fields)
        # The signed fields authorise the upload. The key must not go to an address from a response.
        headers = {"Accept": "application/json", **form.headers}
        stored = self._transport.json("postUpload", "POST", self._slot_address(slot.get("url")), headers, form)
        if stored.get("uploadId") != slot.get("uploadId"):
            raise TakemarkError("bad_response", "the response is not the stored upload")
        return stored

    def download_asset(
        self,
        proof_id: str,
        to: str | os.PathLike[str],
        *,
        part: Literal["audio", "sidecar"] = "audio",
    ) -> str:
        """Downloads the delivered file of a proof, and returns its SHA-256 in hex.

        The file appears at `to` only when it is complete and its digest matches.
        """
        return self._download("readProofAsset", ("v1", "proofs", proof_id, "asset"), {"part": part}, to)

    def download_fixture(
        self, name: str, to: str | os.PathLike[str], *, part: Literal["audio", "sidecar"] = "audio"
    ) -> str:
        """Downloads a file of a sandbox fixture, as `download_asset` does."""
        return self._download("readSandboxFile", ("v1", "sandbox", "fixtures", name, part), {}, to)

    def rotate_key(self, state_file: str | os.PathLike[str]) -> RotatedKey:
        """Replaces the key of this client, and returns the new one.

        The file holds the progress of the rotation, and at the end the new secret. After a crash or an error,
        call the method again with the same key and file: it ends with the same new key. This client keeps its
        old key, which works until `previousKeyExpiresAt`.
        """

        def call(idempotency_key: str) -> dict[str, Any]:
            return self._repeated(
                lambda: self._once(
                    "rotateKey",
                    "POST",
                    ("v1", "partner", "keys", "rotate"),
                    idempotency_key=idempotency_key,
                ),
                lambda error: error.transient or error.reason == "rotation_in_progress",
            )

        return rotate(state_file, self.__api_key, call, time.time())

    def _json(
        self,
        operation: str,
        method: str,
        path: tuple[str, ...],
        *,
        query: Mapping[str, str | int | None] | None = None,
        body: object = None,
        idempotency_key: str | None = None,
        repeatable: bool = False,
        public: bool = False,
    ) -> Any:
        result = self._repeated(
            lambda: self._once(
                operation,
                method,
                path,
                query=query,
                body=body,
                idempotency_key=idempotency_key,
                public=public,
            ),
            _is_transient if repeatable or idempotency_key is not None else _is_refused_for_now,
        )
        return _checked(operation, result)

    def _once(
        self,
        operation: str,
        method: str,
        path: tuple[str, ...],
        *,
        query: Mapping[str, str | int | None] | None = None,
        body: object = None,
        idempotency_key: str | None = None,
        public: bool = False,
    ) -> dict[str, Any]:
        headers = {"Accept": "application/json"} if public else self._headers()
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        if body is not None:
            headers["Content-Type"] = "application/json"
        data = None if body is None else json.dumps(body).encode()
        address = self._address(path, query)
        if not public:
            headers |= self._signature(method, address, data)
        return self._transport.json(operation, method, address, headers, data)

    def _download(
        self, operation: str, path: tuple[str, ...], query: Mapping[str, str], to: str | os.PathLike[str]
    ) -> str:
        address = self._address(path, query)
        # A fresh name, which `x` creates: a file or a link that exists is neither written nor removed.
        partial = os.path.join(os.path.dirname(os.fspath(to)), f".{uuid.uuid4().hex}.part")
        file = open(partial, "xb")

        def attempt() -> str:
            digest = hashlib.sha256()
            file.seek(0)
            file.truncate()
            sent = {**self._headers(), **self._signature("GET", address, None), "Accept": "*/*"}
            with self._transport.stream(operation, address, sent) as (headers, chunks):
                for chunk in chunks:
                    if file.tell() > MAX_DOWNLOAD_BYTES:
                        raise TakemarkError("bad_response", "the file is larger than 4 GiB")
                    digest.update(chunk)
                    file.write(chunk)
            announced = _DIGEST.search(headers.get("Repr-Digest", ""))
            if announced is None or b64decode(announced[1]) != digest.digest():
                raise TakemarkError("bad_response", "the digest of the downloaded file does not match")
            return digest.hexdigest()

        try:
            with file:
                found = retrying(attempt, self._attempts, _is_transient)
            os.replace(partial, to)
        except BaseException:
            with suppress(FileNotFoundError):
                os.remove(partial)
            raise
        return found

    def _repeated(
        self, attempt: Callable[[], dict[str, Any]], repeatable: Callable[[TakemarkError], bool]
    ) -> dict[str, Any]:
        return retrying(attempt, self._attempts, repeatable)

    def _headers(self) -> dict[str, str]:
        return {"Accept": "application/json", "x-api-key": self.__api_key}

    def _signature(self, method: str, address: SplitResult, body: bytes | None) -> dict[str, str]:
        return {} if self._signer is None else self._signer.headers(method, address, body)

    def _address(
        self, path: tuple[str, ...], query: Mapping[str, str | int | None] | None = None
    ) -> SplitResult:
        for part in path:
            # Another identifier, such as `..`, would change the path of the call (rule 17.2).
            if not _IDENTIFIER.fullmatch(part):
                raise ValueError(f"not an identifier: {part!r}")
        given = {name: value for name, value in (query or {}).items() if value is not None}
        return self._base._replace(path=f"{self._base.path}/{'/'.join(path)}", query=urlencode(given))

    def _slot_address(self, text: object) -> SplitResult:
        try:
            address = address_of(text if isinstance(text, str) else "")
        except ValueError:
            raise TakemarkError("bad_response", "the slot has no valid address") from None
        plain = address.scheme == "http"
        if plain and (self._base.scheme == "https" or (is_plain(address) and not self._allow_plain_http)):
            raise TakemarkError("bad_response", "the address of the slot is less protected than the service")
        return address


def _is_transient(error: TakemarkError) -> bool:
    return error.transient


def _is_refused_for_now(error: TakemarkError) -> bool:
    """Returns True for a 429, the only failure that guarantees that nothing was done (rule 17.1)."""
    return error.status == 429


def _checked(operation: str, result: dict[str, Any]) -> dict[str, Any]:
    """Adds `accepted` to a verification (rule 17.3)."""
    if operation in ("verify", "verifyFile"):
        if not isinstance(result.get("verdict"), str) or not isinstance(result.get("good"), bool):
            raise TakemarkError("bad_response", "the response is not a verification")
        result["accepted"] = result["good"] and result["verdict"] == "valid"
    return result
