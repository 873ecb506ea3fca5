import type { MeasuredSamples } from '../../../core/domain/audio.js';
import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import { refuseFile } from '../../../core/domain/verdict.js';
import type { ResultOf } from '../../contract/results.js';
import { unitsOf } from '../../domain/upload.js';
import type { ProofStore, UploadStore, UsageStore } from '../../ports/stores.js';
import type { Clock, Ids } from '../../ports/system.js';
import type { Caller } from '../caller.js';
import type { HeavyReads } from '../usage/heavy-reads.js';
import { charge } from '../usage/quota.js';
import { admitTurn, type RateLimits, weigh } from '../usage/rate-limits.js';
import { findMatches, type IdentifiedUpload, type KnownDigests } from './find-matches.js';
import { findUpload } from './find-upload.js';

/** A digest to look for. Without `of`, it may be a digest of any kind. */
export interface AskedDigest {
  readonly sha256: string;
  readonly of?: 'file' | 'bound' | 'samples';
}

/** An upload, or digests of files that are not sent. */
export type IdentifyRequest =
  | { readonly uploadId: string; readonly digests?: never }
  | { readonly uploadId?: never; readonly digests: readonly AskedDigest[] };

type Identified = ResultOf<'identify'>;

/** The digests that one unit of the quota, and one call of the request rate, pays for. */
const DIGESTS_OF_UNIT = 100;

export interface IdentifyDeps {
  readonly stores: UploadStore & ProofStore & UsageStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly limits: Pick<RateLimits, 'spend' | 'weigh' | 'giveBack'>;
  readonly reads: Pick<HeavyReads, 'run'>;
  /** Gives up the wait for the caller's turn. */
  readonly signal?: AbortSignal;
}

/** Returns the issued proofs that an upload or a digest matches. A match is not a verification result. */
export function identify(deps: IdentifyDeps, caller: Caller, request: IdentifyRequest): Promise<Identified> {
  return request.digests === undefined
    ? identifyUpload(deps, caller, request.uploadId)
    : // What the digests match is weighed after the read, so the reads of a partner that run at once are few.
      deps.reads.run(caller, () => identifyDigests(deps, caller, request.digests), deps.signal);
}

/** Identifies an upload. An upload is billed once, and an upload of unknown container is not billed. */
async function identifyUpload(
  deps: IdentifyDeps,
  caller: Caller,
  uploadId: string,
): Promise<IdentifiedUpload> {
  const now = Math.floor(deps.clock.now() / 1000);
  const facts = await findUpload(deps.stores, caller, uploadId, 'identify', now);
  const { measurement, expiresAt } = facts;
  const { sha256, bindingSha256 } = measurement;
  const samples = samplesOf(measurement.samples);
  const refusal = refuseFile(facts);
  const [matches = []] = await findMatches(
    deps.stores,
    [defined({ file: sha256, bound: bindingSha256 ?? sha256, samples: samples.samples ?? undefined })],
    defined({
      partnerId: caller.partnerId,
      unreadableBecause: refusal?.verdict === 'unreadable' ? refusal.reasons : undefined,
    }),
  );
  weigh(deps, caller, { entries: matches.length });
  // A pair may have audio of any format, so unknown audio is refused only without a match.
  if (measurement.container === 'unknown' && matches.length === 0)
    throw new DomainError('unprocessable', 'The file is not in an audio format that the service supports.');
  // Rule 6.15.
  if (measurement.container !== 'unknown')
    await charge(deps.stores, caller, {
      operation: 'identify',
      dedupeKey: `identify ${uploadId}`,
      units: unitsOf(measurement.bytes),
      at: now,
      dedupeUntil: expiresAt,
    });
  return { matches, ...samples };
}

function samplesOf(
  samples: MeasuredSamples | undefined,
): Pick<IdentifiedUpload, 'samples' | 'samplesReason'> {
  if (samples === undefined) return {};
  return 'sha256' in samples ? { samples: samples.sha256 } : { samples: null, samplesReason: samples.reason };
}

/** Looks for digests. Each call is billed (rule 13.6). */
async function identifyDigests(
  deps: IdentifyDeps,
  caller: Caller,
  digests: readonly AskedDigest[],
): Promise<Extract<Identified, { readonly results: unknown }>> {
  admitTurn(deps, caller);
  const now = Math.floor(deps.clock.now() / 1000);
  const found = await findMatches(deps.stores, digests.map(knownDigests));
  const results = digests.map(({ sha256 }, i) => ({ sha256, matches: found[i]! }));
  const matches = results.reduce((sum, result) => sum + result.matches.length, 0);
  // One match for each digest is what the digests weigh themselves.
  weigh(deps, caller, { entries: matches - digests.length, digests: digests.length });
  await charge(deps.stores, caller, {
    operation: 'identify',
    dedupeKey: deps.ids.next('request'),
    units: Math.ceil(digests.length / DIGESTS_OF_UNIT),
    at: now,
    dedupeUntil: now,
  });
  return { results };
}

/** Returns what a digest says of its file. The whole of a file without a credential is also what a proof would bind. */
function knownDigests({ sha256, of }: AskedDigest): KnownDigests {
  switch (of) {
    case 'file':
      return { file: sha256, bound: sha256 };
    case 'bound':
      return { bound: sha256 };
    case 'samples':
      return { samples: sha256 };
    default:
      return { file: sha256, bound: sha256, samples: sha256 };
  }
}
