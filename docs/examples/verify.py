"""Verifies an audio file: python3 verify.py FILE, with TAKEMARK_URL and TAKEMARK_API_KEY in the environment.

Prints the service's answer in one line. Exit codes: 0 accepted, 1 not accepted, 2 wrong use, 3 no answer, and
4 where the credential holds and a person is to look at its evidence.
"""

import ipaddress
import json
import os
import re
import secrets
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

ATTEMPTS = 5
LONGEST_PAUSE = 60


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key along."""

    def redirect_request(self, *_):
        return None


# Plain HTTP is for loopback, and a proxy would see the key. HTTPS passes a proxy unread.
proxies = {scheme: proxy for scheme, proxy in urllib.request.getproxies().items() if scheme == "https"}
opener = urllib.request.build_opener(NoRedirect, urllib.request.ProxyHandler(proxies))


def protected(url):
    """Keys and audio travel over TLS, or do not leave this machine.

    The name localhost is refused: it may mean ::1, where another user of this machine can listen.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return url
    try:
        loopback = ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        loopback = False
    if parts.scheme == "http" and loopback:
        return url
    sys.exit(wrong_use("plain HTTP is for loopback addresses alone"))


def wrong_use(message):
    print(message, file=sys.stderr)
    return 2


def post(url, body, headers):
    request = urllib.request.Request(protected(url), data=body, headers=headers, method="POST")
    with opener.open(request, timeout=300) as response:
        return json.load(response)


def retrying(call):
    """Repeats a call that was refused for now, after the pause that the service asks for."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return call()
        except urllib.error.HTTPError as error:
            asked = error.headers.get("Retry-After", "")
            pause = int(asked) if asked.isdecimal() else 2**attempt
            if error.code not in (429, 503) or attempt == ATTEMPTS or pause > LONGEST_PAUSE:
                raise
            time.sleep(pause)


def verify(base, key, audio):
    mark = secrets.token_hex(16)
    head = (
        f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="audio"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    form = head.encode() + audio + f"\r\n--{mark}--\r\n".encode()
    headers = {
        "x-api-key": key,
        "Content-Type": f"multipart/form-data; boundary={mark}",
        # All attempts have the same key, so the call is billed once.
        "Idempotency-Key": secrets.token_hex(16),
    }
    return retrying(lambda: post(f"{base}/v1/verifications", form, headers))


def outcome(result):
    """A verdict or status that is not known today is not accepted."""
    if result.get("verdict") != "valid" or result.get("good") is not True:
        return 1
    return {"verified_binding": 0, "needs_review": 4}.get((result.get("decision") or {}).get("status"), 1)


def main():
    base = os.environ.get("TAKEMARK_URL", "").rstrip("/")
    key = os.environ.get("TAKEMARK_API_KEY", "")
    if len(sys.argv) != 2 or not base or not key:
        return wrong_use("usage: TAKEMARK_URL=... TAKEMARK_API_KEY=... python3 verify.py FILE")
    # The error for a header that cannot be sent would show the key.
    if not re.fullmatch(r"[\x21-\x7e]+", key):
        return wrong_use("TAKEMARK_API_KEY must be printable ASCII without spaces or line breaks")
    protected(base)
    try:
        with open(sys.argv[1], "rb") as file:
            audio = file.read()
    except OSError as error:
        return wrong_use(str(error))
    try:
        result = verify(base, key, audio)
    except urllib.error.HTTPError as error:
        print(f"refused with {error.code}: {error.read(4096).decode(errors='replace')}", file=sys.stderr)
        return 3
    except (OSError, ValueError, KeyError) as error:
        print(f"no answer: {error!r}", file=sys.stderr)
        return 3
    print(json.dumps(result))
    return outcome(result)


if __name__ == "__main__":
    sys.exit(main())
