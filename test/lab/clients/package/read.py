"""Calls every operation through the Python package, and prints what the package made of each answer: a line of JSON."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from takemark import Client, TakemarkError
from takemark.types import CreateReview, Telemetry, UploadSlot, Verification, Verify


def read(name: str, call: Callable[[], Any]) -> Any:
    body: Any = None
    line: dict[str, Any]
    try:
        body = call()
        # The package does not return the status of a success, so the expected status is printed.
        line = {"status": STATUSES.get(name, 200), "body": body}
        if name in ("verify", "verifyFile"):
            accepted = body.pop("accepted")
            if accepted is not (body["good"] and body["verdict"] == "valid"):
                line = {"error": f"accepted is {accepted}"}
    except TakemarkError as error:
        line = {"status": error.status, "body": error.body}
    except Exception as error:
        line = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps({"call": name, **line}))
    return body


STATUSES = {
    "createUpload": 201,
    "postUpload": 201,
    "rotateKey": 201,
    "createReview": 201,
    "openEvidence": 201,
    "telemetry": 202,
}


def meaning(verification: Verification) -> str:
    """Compiles as long as the verdict is any text."""
    return {"valid": "accepted"}.get(verification["verdict"], "a verdict of another year")


url, song = sys.argv[1:]
state = Path(sys.prefix) / "rotation.json"
state.unlink(missing_ok=True)
client = Client(url, "key", attempts=1)
verify: Verify = {"uploadId": "upl_1"}
review: CreateReview = {
    "proofId": "prf_1",
    "bindings": {"creatorId": "c", "accountId": "a", "submissionId": "s", "trackId": "t"},
}
telemetry: Telemetry = {"events": [{"name": "app_started", "count": 1, "at": 1_767_225_600}]}

read("verify", lambda: client.verify(verify))
for status in (400, 429):
    refusing = Client(f"{url}/{status}", "key", attempts=1)
    read(f"verify {status}", lambda: refusing.verify(verify))
read("identify", lambda: client.identify({"uploadId": "upl_1"}))
by_digest = Client(f"{url}/digests", "key", attempts=1)
read("identify digests", lambda: by_digest.identify_digests({"digests": [{"sha256": "0" * 64}]}))
slot: UploadSlot = read("createUpload", lambda: client.create_upload({"purpose": "verify"}))
fields = {"policy": "given", "signature": "given"}
given: UploadSlot = {**slot, "url": f"{url}/uploads/upl_1", "fields": fields}
read("postUpload", lambda: client.upload(given, song))
read("verifyFile", lambda: client.verify_file(song))
read("readRecord", lambda: client.read_record("prf_1"))
read("listProofs", lambda: client.list_proofs_page(include="evidenceReport"))
read("readProof", lambda: client.read_proof("prf_1"))
read("eraseProof", lambda: client.erase_proof("prf_1"))
read("listKeys", client.list_keys_page)
read("rotateKey", lambda: client.rotate_key(state))
read("revokeOwnKey", lambda: client.revoke_own_key("key_1"))
read("readUsage", client.read_usage)
read("createReview", lambda: client.create_review(review))
read("listReviews", client.list_reviews_page)
read("readReview", lambda: client.read_review("rev_1"))
read("openEvidence", lambda: client.open_evidence("rev_1", {"kind": "source_licence"}))
read("closeEvidence", lambda: client.close_evidence("rev_1", "req_1", {"status": "accepted"}))
read("resolveReview", lambda: client.resolve_review("rev_1", {"outcome": "accepted"}))
read("sandboxFixtures", client.sandbox_fixtures)
read("telemetry", lambda: client.telemetry(telemetry))
read("health", client.health)
