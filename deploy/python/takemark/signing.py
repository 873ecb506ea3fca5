"""Signs calls for keys that require it (RFC 9421, RFC 9530)."""

import hashlib
import re
import secrets
import time
from base64 import b64encode
from collections.abc import Callable
from urllib.parse import SplitResult

_KEY_ID = re.compile(r"_(key_[0-9A-Z]{26})_")


class Signer:
    """Signs requests with the private key whose public key the operator gave to the API key.

    A signature is valid for one request, so each attempt needs its own.
    """

    def __init__(self, signing_key: str | bytes, api_key: str) -> None:
        key_id = _KEY_ID.search(api_key)
        if key_id is None:
            raise ValueError("the key does not contain a key id")
        self._key_id = key_id[1]
        self._api_key = api_key
        pem = signing_key.encode() if isinstance(signing_key, str) else signing_key
        self._algorithm, self._sign = _loaded(pem)

    def headers(self, method: str, address: SplitResult, body: bytes | None) -> dict[str, str]:
        """Returns the signature headers of a request. The request must not change afterwards."""
        values = {
            "@method": method,
            "@path": address.path or "/",
            "@query": f"?{address.query}",
            "x-api-key": self._api_key,
        }
        headers = {}
        if body is not None:
            digest = f"sha-256=:{_base64(hashlib.sha256(body).digest())}:"
            values["content-digest"] = digest
            headers["Content-Digest"] = digest
        names = " ".join(f'"{name}"' for name in values)
        nonce = secrets.token_urlsafe(18)
        created = int(time.time())
        parameters = f'({names});created={created};keyid="{self._key_id}";nonce="{nonce}";alg="{self._algorithm}"'
        lines = [f'"{name}": {value}' for name, value in values.items()]
        base = "\n".join([*lines, f'"@signature-params": {parameters}'])
        headers["Signature-Input"] = f"sig={parameters}"
        headers["Signature"] = f"sig=:{_base64(self._sign(base.encode()))}:"
        return headers


def _loaded(pem: bytes) -> tuple[str, Callable[[bytes], bytes]]:
    """Returns the name of the key's algorithm (RFC 9421, 6.2) and a function that signs."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
    except ImportError as error:
        raise ImportError('signing_key needs the package cryptography: pip install "takemark[signing]"') from error
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # The message of the library may quote the key.
        raise ValueError("signing_key must be a private key as PEM, without a password") from None
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return "ed25519", key.sign
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError("signing_key must be an Ed25519 or P-256 key")
    curve_key = key

    def sign(message: bytes) -> bytes:
        r, s = decode_dss_signature(curve_key.sign(message, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    return "ecdsa-p256-sha256", sign


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
