import { createHash } from 'node:crypto';
import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import {
  ENGINE_VERSION,
  type EvidenceFacts,
  type EvidenceReference,
  MAX_INLINE_EVIDENCE,
} from '../../../witness/domain/evidence.js';
import { summariseEvidence } from '../../../witness/domain/evidence-report.js';
import { type StoredSummary, settleSummary } from '../../../witness/domain/evidence-summary.js';
import { TRACE_LIMITS } from '../../../witness/domain/trace.js';
import type { Replayed } from '../../../witness/replay/replay-trace.js';
import { composeReport } from '../../../witness/report/compose-report.js';
import { encodeEvidence } from '../../../witness/report/evidence-body.js';
import { readDetections, readSummary } from '../../../witness/report/read-supplied.js';
import { type SettlingContext, settleFacts } from '../../../witness/report/settle-facts.js';
import type { OpenTrace } from '../../../witness/trace/read-trace.js';
import type { IssuedProof } from '../../domain/proof.js';
import type { AssetStore, StagedAsset } from '../../ports/assets.js';
import type { EvidenceBody, ProofStore } from '../../ports/stores.js';
import type { Devices } from '../system/devices.js';

/** The evidence submitted with the audio. The trace is read once, before the audio. */
export interface SubmittedEvidence {
  readonly trace: AsyncIterable<Uint8Array>;
  /** The client's own summary of the session, as JSON. The replay decides (docs/evidence.md). */
  readonly summary?: Uint8Array;
  /** The detection results for imports, as JSON (docs/evidence.md). */
  readonly detections?: Uint8Array;
  /** The signal that aborts when the caller of the issuing is gone. */
  readonly signal?: AbortSignal;
}

export interface SettleEvidenceDeps {
  readonly assets: AssetStore;
  /** Replays a trace. The partners take turns. */
  readonly replay: (partnerId: string, open: OpenTrace, signal?: AbortSignal) => Promise<Replayed>;
  readonly devices: Pick<Devices, 'standing' | 'get'>;
  readonly stores: Pick<ProofStore, 'findProofs'>;
  readonly environment: string;
}

/** A staged and replayed trace, with the evidence supplied beside it. */
export interface ReplayedTrace {
  readonly staged: StagedAsset;
  readonly replayed: Replayed;
  readonly supplied: Pick<SettlingContext, 'summary' | 'detections'>;
}

/** The evidence of a proof, ready to be published before the proof is registered. */
export interface SettledEvidence {
  readonly reference: EvidenceReference;
  readonly facts: EvidenceFacts;
  readonly summary: StoredSummary;
  /** The bodies that are stored in the registry together with the proof. */
  readonly bodies: readonly EvidenceBody[];
  /** Makes the trace and large bodies visible in the object store. */
  publish(): Promise<void>;
  /** Discards what is staged. Has no effect after `publish`, and may be called any number of times. */
  discard(): Promise<void>;
}

/**
 * Stages the trace as it streams, and replays it. A hostile trace fails here, before anything is registered.
 * @throws DomainError `unprocessable` for an invalid trace, or for a simulated trace in production
 */
export async function replaySubmitted(
  { assets, replay, environment }: SettleEvidenceDeps,
  { proofId, partnerId }: Pick<IssuedProof, 'proofId' | 'partnerId'>,
  { trace, summary, detections, signal }: SubmittedEvidence,
): Promise<ReplayedTrace> {
  const supplied = defined({
    summary: summary && readSummary(summary),
    detections: detections && readDetections(detections),
  });
  const staged = await assets.stage(proofId, 'trace');
  try {
    let bytes = 0;
    for await (const chunk of trace) {
      bytes += chunk.length;
      if (bytes > TRACE_LIMITS.traceBytes)
        throw new DomainError(
          'unprocessable',
          `A trace may contain at most ${TRACE_LIMITS.traceBytes} bytes.`,
          {
            reason: 'trace_too_large',
          },
        );
      await staged.append(chunk);
    }
    const replayed = await replay(partnerId, () => staged.read(), signal);
    if (replayed.header.simulated && environment === 'production')
      throw new DomainError(
        'unprocessable',
        'The trace is a generated test trace, which this environment does not accept.',
        {
          reason: 'trace_simulated',
        },
      );
    return { staged, replayed, supplied };
  } catch (error) {
    await staged.discard();
    throw error;
  }
}

/**
 * Settles the evidence: compares the replay with the device's standing, the audio and the statements of the
 * issuing side.
 */
export async function settleEvidence(
  { assets, devices, stores }: SettleEvidenceDeps,
  {
    proofId,
    now,
    originalSha256,
  }: {
    readonly proofId: string;
    /** The time in unix seconds. A device that was revoked while the audio arrived counts as revoked. */
    readonly now: number;
    readonly originalSha256: string;
  },
  { staged, replayed, supplied }: ReplayedTrace,
): Promise<SettledEvidence> {
  const { standing } = await devices.standing(replayed.deviceId, now);
  const enrolledAt = devices.get(replayed.deviceId)?.enrolledAt;
  const { facts, detail } = settleFacts(replayed, {
    standing,
    originalSha256,
    now,
    isUsedBefore: await isUsedBefore(stores, replayed, originalSha256),
    ...defined({ enrolledAt }),
    ...supplied,
  });
  const bodies = [
    { part: 'facts', body: encodeEvidence('facts', facts) },
    { part: 'detail', body: encodeEvidence('detail', detail) },
  ] as const;
  const isInline = ({ body }: { readonly body: Uint8Array }): boolean => body.length <= MAX_INLINE_EVIDENCE;
  const objects: StagedAsset[] = [];
  try {
    for (const { part, body } of bodies.filter((each) => !isInline(each))) {
      const object = await assets.stage(proofId, part);
      objects.push(object);
      await object.append(body);
    }
  } catch (error) {
    for (const object of objects) await object.discard();
    throw error;
  }
  const all = [...objects, staged];
  const report = composeReport({ facts, declarations: [], altered: 0 });
  return {
    facts,
    summary: settleSummary(summariseEvidence(report), undefined, facts.session.device),
    bodies: bodies.filter(isInline),
    reference: {
      engineVersion: ENGINE_VERSION,
      traceSha256: replayed.sha256,
      parts: [
        ...bodies.map(({ part, body }) => ({
          part,
          bytes: body.length,
          sha256: createHash('sha256').update(body).digest('hex'),
          place: body.length <= MAX_INLINE_EVIDENCE ? ('registry' as const) : ('objects' as const),
        })),
        { part: 'trace' as const, bytes: replayed.bytes, sha256: replayed.sha256, place: 'objects' as const },
      ],
    },
    async publish() {
      for (const object of all) await object.publish();
    },
    async discard() {
      for (const object of all) await object.discard();
    },
  };
}

/** The exports of a trace whose proofs are looked up, from the latest one, and the proofs of each. */
const LOOKED_UP = { exports: 16, proofs: 8 } as const;

/**
 * Reports whether a proof was issued with the same trace, for this audio or for an export of the session. Proofs for
 * other audio have the finding `trace_export_differs`. Two calls at the same time do not see each other.
 */
async function isUsedBefore(
  stores: Pick<ProofStore, 'findProofs'>,
  { sha256, session: { exports } }: Replayed,
  originalSha256: string,
): Promise<boolean> {
  const exported = exports.slice(-LOOKED_UP.exports).map(({ fileSha256 }) => fileSha256);
  const files = [...new Set([originalSha256, ...exported])];
  const found = await Promise.all(files.map((file) => stores.findProofs('original', file, LOOKED_UP.proofs)));
  return found.flat().some(({ evidence }) => evidence?.traceSha256 === sha256);
}
