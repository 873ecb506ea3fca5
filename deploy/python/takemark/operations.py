"""The calls that send and return JSON.

Derived from deploy/openapi/takemark.json by `npm run build:openapi`. Do not edit.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

from .pages import entries
from .types import (
    CloseEvidence,
    CreateReview,
    CreateUpload,
    DigestsIdentification,
    Erasure,
    Fixtures,
    Health,
    Identification,
    Identify,
    IdentifyDigests,
    Key,
    KeyPage,
    OpenEvidence,
    PartnerReviewCase,
    ProofDocument,
    ProofEntry,
    ProofPage,
    ProofRecord,
    ResolveReview,
    ReviewPage,
    Telemetry,
    TelemetryAccepted,
    UploadSlot,
    Usage,
    Verification,
    Verify,
)


class Operations(ABC):
    """One method for each call. Their descriptions are those of `/docs`."""

    @abstractmethod
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
        """Sends a call and returns the JSON object of its response."""

    def verify(
        self,
        body: Verify,
    ) -> Verification:
        """Verify one credentialed file, or an audio file and its sidecar.

        Has no side effects and is safe to retry. Repeated calls for the same upload and sidecar are
        billed once, with one unit for each 65 MiB begun. The status is 200 for every verdict.
        Accept the file only if `good` is true and `verdict` is `valid`.
        """
        return cast(
            Verification,
            self._json(
                "verify",
                "POST",
                ("v1", "verify"),
                body=body,
                repeatable=True,
            ),
        )

    def create_upload(
        self,
        body: CreateUpload | None = None,
    ) -> UploadSlot:
        """Create a short-lived upload slot.

        Next, post the audio to `url` as multipart/form-data: first every entry of `fields`, then
        the file in a field named `file`. Unused slots expire after 15 minutes. A file above 65 MiB
        needs the purpose `verify_large` or `identify_large`, and costs one unit for each 65 MiB
        begun. Safe to retry.
        """
        return cast(
            UploadSlot,
            self._json(
                "createUpload",
                "POST",
                ("v1", "uploads"),
                body=body or {},
                repeatable=True,
            ),
        )

    def read_record(
        self,
        proof_id: str,
    ) -> ProofRecord:
        """Read the registered record of a proof.

        Works for any proof of the environment. The record is not a verification result and does not
        state that any file matches. If the proof was erased, was never issued or is still pending,
        the response is the same 404.
        """
        return cast(
            ProofRecord,
            self._json(
                "readRecord",
                "GET",
                ("v1", "records", proof_id),
                repeatable=True,
            ),
        )

    def list_proofs(
        self,
        *,
        issued_after: int | None = None,
        issued_before: int | None = None,
        include: Literal["evidenceReport"] | None = None,
    ) -> Iterator[ProofEntry]:
        """List your own issued proofs, newest first.

        Reads page after page, and yields every entry.
        """
        return entries(
            lambda cursor: self.list_proofs_page(
                limit=100,
                cursor=cursor,
                issued_after=issued_after,
                issued_before=issued_before,
                include=include,
            ),
            "proofs",
        )

    def list_proofs_page(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        issued_after: int | None = None,
        issued_before: int | None = None,
        include: Literal["evidenceReport"] | None = None,
    ) -> ProofPage:
        """List your own issued proofs, newest first."""
        return cast(
            ProofPage,
            self._json(
                "listProofs",
                "GET",
                ("v1", "proofs"),
                query={
                    "limit": limit,
                    "cursor": cursor,
                    "issuedAfter": issued_after,
                    "issuedBefore": issued_before,
                    "include": include,
                },
                repeatable=True,
            ),
        )

    def read_proof(
        self,
        proof_id: str,
    ) -> ProofDocument:
        """Read one of your own proofs."""
        return cast(
            ProofDocument,
            self._json(
                "readProof",
                "GET",
                ("v1", "proofs", proof_id),
                repeatable=True,
            ),
        )

    def erase_proof(
        self,
        proof_id: str,
    ) -> Erasure:
        """Erase one of your own proofs.

        Idempotent: a repeated call returns `already_erased` with the time of the first erasure.
        Removes the record, the reports, the delivered file and every review case of the proof. From
        then on the credential verifies as `unregistered`.
        """
        return cast(
            Erasure,
            self._json(
                "eraseProof",
                "DELETE",
                ("v1", "proofs", proof_id),
                repeatable=True,
            ),
        )

    def list_keys(
        self,
    ) -> Iterator[Key]:
        """List your keys.

        Reads page after page, and yields every entry.
        """
        return entries(
            lambda cursor: self.list_keys_page(
                limit=100,
                cursor=cursor,
            ),
            "keys",
        )

    def list_keys_page(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> KeyPage:
        """List your keys.

        Without `limit` and `cursor`, returns the complete list. With either of them, returns pages.
        Never returns a secret.
        """
        return cast(
            KeyPage,
            self._json(
                "listKeys",
                "GET",
                ("v1", "partner", "keys"),
                query={
                    "limit": limit,
                    "cursor": cursor,
                },
                repeatable=True,
            ),
        )

    def revoke_own_key(
        self,
        key_id: str,
        *,
        successors: str | None = None,
    ) -> Key:
        """Revoke one of your own keys.

        Takes effect at once and cannot be undone. Repeating the call returns the same response,
        unless the key revoked itself: its calls are 403. An active key may revoke any key of its
        partner. A call that would leave no active key is 409 `last_active_key`, also if calls are
        simultaneous: rotate the key first, then revoke it with its successor. A rotated key may
        revoke only itself, so that a leaked key cannot revoke its successor. Any other key is 403
        `key_expiring`. With `successors=true` the call also revokes every key that replaced the
        key. If a leaked key may have been rotated by another person, revoke it with its successors,
        using another active key.
        """
        return cast(
            Key,
            self._json(
                "revokeOwnKey",
                "DELETE",
                ("v1", "partner", "keys", key_id),
                query={
                    "successors": successors,
                },
                repeatable=True,
            ),
        )

    def read_usage(
        self,
        *,
        days: int | None = None,
    ) -> Usage:
        """Read the limits of the plan and the usage per day.

        Only `verify` and `identify` use units of the quota, and the usage per day has their units.
        All other calls are free, and the usage per day has their number. Repeating the verify or
        the identify of an upload is free, and is not included.
        """
        return cast(
            Usage,
            self._json(
                "readUsage",
                "GET",
                ("v1", "partner", "usage"),
                query={
                    "days": days,
                },
                repeatable=True,
            ),
        )

    def create_review(
        self,
        body: CreateReview,
        *,
        idempotency_key: str | None = None,
    ) -> PartnerReviewCase:
        """Open a review case for a registered proof.

        A case contains opaque identifiers only, never names, files or notes. The case ends after
        180 days, or when its proof is erased. A partner can have 1,000 cases on one proof and
        100,000 in total. Beyond these limits the call is 429 `review_limit`, and Retry-After is the
        time until the oldest case ends. The Idempotency-Key is optional. For 24 hours, a call with
        the same Idempotency-Key and the same data returns the same response, with
        `idempotency-replayed: true`, or 404 if the proof was erased meanwhile. A call with the same
        Idempotency-Key and different data is 409.
        """
        return cast(
            PartnerReviewCase,
            self._json(
                "createReview",
                "POST",
                ("v1", "partner", "reviews"),
                body=body,
                idempotency_key=idempotency_key,
            ),
        )

    def list_reviews(
        self,
        *,
        proof_id: str | None = None,
        status: Literal["open", "resolved"] | None = None,
    ) -> Iterator[PartnerReviewCase]:
        """List your own review cases, newest first.

        Reads page after page, and yields every entry.
        """
        return entries(
            lambda cursor: self.list_reviews_page(
                limit=100,
                cursor=cursor,
                proof_id=proof_id,
                status=status,
            ),
            "reviews",
        )

    def list_reviews_page(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        proof_id: str | None = None,
        status: Literal["open", "resolved"] | None = None,
    ) -> ReviewPage:
        """List your own review cases, newest first.

        Omits cases that have ended and cases whose proof was erased. A short or empty page may not
        be the last: continue while there is a `nextCursor`.
        """
        return cast(
            ReviewPage,
            self._json(
                "listReviews",
                "GET",
                ("v1", "partner", "reviews"),
                query={
                    "limit": limit,
                    "cursor": cursor,
                    "proofId": proof_id,
                    "status": status,
                },
                repeatable=True,
            ),
        )

    def read_review(
        self,
        review_id: str,
    ) -> PartnerReviewCase:
        """Read a review case."""
        return cast(
            PartnerReviewCase,
            self._json(
                "readReview",
                "GET",
                ("v1", "partner", "reviews", review_id),
                repeatable=True,
            ),
        )

    def open_evidence(
        self,
        review_id: str,
        body: OpenEvidence,
    ) -> PartnerReviewCase:
        """Request supporting evidence.

        Each kind can be requested once per case, while the case is open or held.
        """
        return cast(
            PartnerReviewCase,
            self._json(
                "openEvidence",
                "POST",
                ("v1", "partner", "reviews", review_id, "evidence-requests"),
                body=body,
            ),
        )

    def close_evidence(
        self,
        review_id: str,
        request_id: str,
        body: CloseEvidence,
    ) -> PartnerReviewCase:
        """Accept or decline requested evidence.

        Accepting and declining are both final. A later change is 409 `evidence_request_final`.
        """
        return cast(
            PartnerReviewCase,
            self._json(
                "closeEvidence",
                "PATCH",
                ("v1", "partner", "reviews", review_id, "evidence-requests", request_id),
                body=body,
            ),
        )

    def resolve_review(
        self,
        review_id: str,
        body: ResolveReview,
    ) -> PartnerReviewCase:
        """Record your own outcome of a review case.

        While an evidence request is open, the response is 409 `evidence_requests_open`. Recording
        the same outcome again is 200 and changes nothing. `held` may later become `accepted` or
        `rejected`. `accepted` and `rejected` are final.
        """
        return cast(
            PartnerReviewCase,
            self._json(
                "resolveReview",
                "POST",
                ("v1", "partner", "reviews", review_id, "resolve"),
                body=body,
            ),
        )

    def identify(
        self,
        body: Identify,
    ) -> Identification:
        """Find the issued proofs that match an upload, or digests of files.

        Send `uploadId`, or 1 to 1,000 `digests`. The purpose of the upload must be `identify` or
        `identify_large`. An upload costs one unit for each 65 MiB begun, and a list of digests
        costs one unit for each 100 begun. The digest of a file that was issued, or from which a
        proof was issued, finds what an upload of the file finds. A match is not a verification.
        """
        return cast(
            Identification,
            self._json(
                "identify",
                "POST",
                ("v1", "recordings", "identify"),
                body=body,
            ),
        )

    def identify_digests(
        self,
        body: IdentifyDigests,
    ) -> DigestsIdentification:
        """Find the issued proofs that match an upload, or digests of files.

        Send `uploadId`, or 1 to 1,000 `digests`. The purpose of the upload must be `identify` or
        `identify_large`. An upload costs one unit for each 65 MiB begun, and a list of digests
        costs one unit for each 100 begun. The digest of a file that was issued, or from which a
        proof was issued, finds what an upload of the file finds. A match is not a verification.
        """
        return cast(
            DigestsIdentification,
            self._json(
                "identify",
                "POST",
                ("v1", "recordings", "identify"),
                body=body,
            ),
        )

    def sandbox_fixtures(
        self,
    ) -> Fixtures:
        """List the test files for every verdict, and what `verify` returns for each file.

        Exists only in beta. In production, the response is 404. The call uses no units of the
        quota.
        """
        return cast(
            Fixtures,
            self._json(
                "sandboxFixtures",
                "GET",
                ("v1", "sandbox", "fixtures"),
                repeatable=True,
            ),
        )

    def telemetry(
        self,
        body: Telemetry,
    ) -> TelemetryAccepted:
        """Report how often product events happened.

        Event names are from a closed list, and free text is not accepted. A report therefore cannot
        contain user content.
        """
        return cast(
            TelemetryAccepted,
            self._json(
                "telemetry",
                "POST",
                ("v1", "telemetry"),
                body=body,
            ),
        )

    def health(
        self,
    ) -> Health:
        """Report that the service is up, and which build it runs."""
        return cast(
            Health,
            self._json(
                "health",
                "GET",
                ("v1", "health"),
                repeatable=True,
                public=True,
            ),
        )
