import { setTimeout as delay } from 'node:timers/promises';
import type { EvidenceSummary } from '../../../witness/domain/evidence-report.js';
import {
  type StoredSummary,
  sentSummary,
  settleSummary,
  withDeviceRevoked,
} from '../../../witness/domain/evidence-summary.js';
import { composeStored } from '../../../witness/report/compose-stored.js';
import type { ProofBrief } from '../../domain/proof-brief.js';
import type { ProofStore } from '../../ports/stores.js';
import type { HeavyReads } from '../usage/heavy-reads.js';
import { bodyOf, type ComposeDeps } from './evidence.js';
import { checkOverlay, contentOf } from './overlay.js';

export interface SummariseDeps extends ComposeDeps {
  readonly stores: ComposeDeps['stores'] & Pick<ProofStore, 'changeSummary'>;
  readonly fills: Fills;
  readonly signal?: AbortSignal;
}

/** The least time between two summaries that are settled late, in milliseconds. It allows 25 a second. */
const FILL_MS = 40;

/**
 * Settles the summaries of older records one at a time, at a bounded rate. The partners take turns.
 */
export class Fills {
  readonly #turns: Pick<HeavyReads, 'run'>;
  readonly #everyMs: number;
  #nextAt = 0;

  /** @param turns admits one at a time */
  constructor(turns: Pick<HeavyReads, 'run'>, everyMs = FILL_MS) {
    this.#turns = turns;
    this.#everyMs = everyMs;
  }

  run<Value>(
    reader: { readonly partnerId: string },
    work: () => Promise<Value>,
    signal?: AbortSignal,
  ): Promise<Value> {
    return this.#turns.run(
      reader,
      async () => {
        const pauseMs = this.#nextAt - performance.now();
        if (pauseMs > 0) await delay(pauseMs, undefined, signal === undefined ? {} : { signal });
        this.#nextAt = performance.now() + this.#everyMs;
        return work();
      },
      signal,
    );
  }
}

/**
 * Returns the summary of a proof that was already read, for a list. Nothing else is read, except for a record
 * of an earlier version: its summary is settled now.
 * @returns `erased` when the proof was erased meanwhile. Undefined for a proof without a report
 */
export async function readSummary(
  deps: SummariseDeps,
  reader: { readonly partnerId: string },
  { proofId, createdAt, evidence }: ProofBrief,
): Promise<EvidenceSummary | 'erased' | undefined> {
  if (evidence === 'none') return undefined;
  if (evidence === 'untraced') return UNTRACED;
  const summary =
    evidence === 'unsettled'
      ? await deps.fills.run(reader, () => fill(deps, proofId), deps.signal)
      : evidence;
  if (summary === 'erased') return 'erased';
  const sent = sentSummary(summary);
  if (summary.deviceId === undefined) return sent;
  const { standing } = await deps.devices.standing(summary.deviceId, createdAt);
  return standing === 'revoked' ? withDeviceRevoked(sent) : sent;
}

const UNTRACED = composeStored({ declarations: [], altered: 0 }).outline.summary;

/** Settles the summary of a record that has none, and stores it beside the overlay that it includes. */
async function fill(deps: SummariseDeps, proofId: string): Promise<StoredSummary | 'erased'> {
  const proof = await deps.stores.getProof(proofId);
  if (proof?.state !== 'issued') return 'erased';
  const { overlay } = proof;
  const facts = await bodyOf(deps, proof, 'facts');
  const content = contentOf(checkOverlay(deps.secrets, proof));
  const { outline, device, isAltered } = await deps.compose(
    facts === undefined ? content : { ...content, facts },
  );
  const summary = settleSummary(outline.summary, overlay?.mac, device);
  if (isAltered) {
    // A body that is missing now may be restored, so this summary is not stored.
    return (await deps.stores.getProof(proofId))?.state === 'issued' ? summary : 'erased';
  }
  const outcome = await deps.stores.changeSummary(proofId, (stored) =>
    stored.overlay?.mac === overlay?.mac ? { summary } : undefined,
  );
  return outcome === 'proof_gone' ? 'erased' : summary;
}
