"""Calls every operation through the generated client, and prints what the client made of each answer: a line of JSON."""

import json
import sys

from partner import AuthenticatedClient
from partner.api.keys_and_usage import list_keys, read_usage, revoke_own_key, rotate_key
from partner.api.proofs import erase_proof, list_proofs, read_proof, read_record
from partner.api.reviews import (
    close_evidence,
    create_review,
    list_reviews,
    open_evidence,
    read_review,
    resolve_review,
)
from partner.api.sandbox import sandbox_fixtures
from partner.api.system import health, telemetry
from partner.api.verification import create_upload, identify, post_upload, verify, verify_file
from partner.models import (
    CloseEvidence,
    CloseEvidenceStatus,
    CreateReview,
    CreateUpload,
    Identify,
    IdentifyDigests,
    IdentifyDigestsDigestsItem,
    ListProofsInclude,
    OpenEvidence,
    OpenEvidenceKind,
    PostUploadBody,
    ResolveReview,
    ResolveReviewOutcome,
    ReviewBindings,
    Telemetry,
    TelemetryEventsItem,
    TelemetryEventsItemName,
    UploadPurpose,
    Verify,
    VerifyFileBody,
)
from partner.types import File


def read(name, operation, *args, to, **members):
    try:
        response = operation.sync_detailed(*args, client=to, **members)
        line = {"status": int(response.status_code), "body": response.parsed.to_dict()}
    except Exception as error:
        line = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps({"call": name, **line}))


def song():
    return File(payload=open(sys.argv[2], "rb"), file_name="song.wav")


def client(url):
    return AuthenticatedClient(base_url=url, token="key", prefix="", auth_header_name="x-api-key")


url = sys.argv[1]
usual = client(url)
bindings = ReviewBindings(creator_id="c", account_id="a", submission_id="s", track_id="t")
event = TelemetryEventsItem(name=TelemetryEventsItemName.APP_STARTED, count=1, at=1_767_225_600)

read("verify", verify, to=usual, body=Verify(upload_id="upl_1"))
for status in (400, 429):
    read(f"verify {status}", verify, to=client(f"{url}/{status}"), body=Verify(upload_id="upl_1"))
read("identify", identify, to=usual, body=Identify(upload_id="upl_1"))
digests = IdentifyDigests(digests=[IdentifyDigestsDigestsItem(sha256="0" * 64)])
read("identify digests", identify, to=client(f"{url}/digests"), body=digests)
read("createUpload", create_upload, to=usual, body=CreateUpload(purpose=UploadPurpose.VERIFY))
form = PostUploadBody(policy="given", signature="given", file=song())
read("postUpload", post_upload, "upl_1", to=usual, body=form)
read("verifyFile", verify_file, to=usual, body=VerifyFileBody(file=song()))
read("readRecord", read_record, "prf_1", to=usual)
read("listProofs", list_proofs, to=usual, include=ListProofsInclude.EVIDENCEREPORT)
read("readProof", read_proof, "prf_1", to=usual)
read("eraseProof", erase_proof, "prf_1", to=usual)
read("listKeys", list_keys, to=usual)
read("rotateKey", rotate_key, to=usual, idempotency_key="rotation-of-one-key")
read("revokeOwnKey", revoke_own_key, "key_1", to=usual)
read("readUsage", read_usage, to=usual)
read("createReview", create_review, to=usual, body=CreateReview(proof_id="prf_1", bindings=bindings))
read("listReviews", list_reviews, to=usual)
read("readReview", read_review, "rev_1", to=usual)
read("openEvidence", open_evidence, "rev_1", to=usual, body=OpenEvidence(kind=OpenEvidenceKind.SOURCE_LICENCE))
accepted = CloseEvidence(status=CloseEvidenceStatus.ACCEPTED)
read("closeEvidence", close_evidence, "rev_1", "req_1", to=usual, body=accepted)
resolution = ResolveReview(outcome=ResolveReviewOutcome.ACCEPTED)
read("resolveReview", resolve_review, "rev_1", to=usual, body=resolution)
read("sandboxFixtures", sandbox_fixtures, to=usual)
read("telemetry", telemetry, to=usual, body=Telemetry(events=[event]))
read("health", health, to=usual)
