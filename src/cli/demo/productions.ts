import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DeviceKey } from '../../witness/capture/index.js';
import { renderReportPage } from '../../witness/page/render-report-page.js';
import { reportInput } from '../report-subject.js';
import { printReport } from '../report-text.js';
import { broadcastWave } from '../specimens/audio-files.js';
import { MemorySink } from '../specimens/memory-sink.js';
import type { renderRecording } from '../specimens/music.js';
import { simulateTrace } from '../specimens/simulate-trace.js';
import type { AdverseScenario } from '../specimens/simulated-session.js';
import type { Terminal } from '../terminal.js';
import type { DemoPartner } from './demo-partner.js';

/** A simulated session, its creator's declaration, and the expected decision. */
interface Production {
  readonly name: string;
  readonly title: string;
  readonly adverse: readonly AdverseScenario[];
  readonly declaredOrigin: 'from_scratch' | 'third_party_material';
  readonly expected: 'verified_binding' | 'needs_review';
}

const PRODUCTIONS: readonly Production[] = [
  {
    name: 'clean',
    title: 'Late Train Home (clean session)',
    adverse: [],
    declaredOrigin: 'third_party_material',
    expected: 'verified_binding',
  },
  {
    name: 'adverse',
    title: 'Borrowed Train (session with conflicts)',
    adverse: ['import_only', 'imports_cover_export', 'activity_after_export'],
    declaredOrigin: 'from_scratch',
    expected: 'needs_review',
  },
];

/** An issued and verified production: the service's result, and the path of its report page. */
export interface ShownProduction {
  readonly name: string;
  readonly status: string;
  readonly conflicts: number;
  readonly asExpected: boolean;
  readonly page?: string;
}

/**
 * Issues each production with a simulated trace, records its declaration, verifies it and shows the report.
 * @param terminal prints the report. Absent for a quiet demo
 * @param keep the directory for the pages
 */
export async function showProductions(
  partner: DemoPartner,
  recording: ReturnType<typeof renderRecording>,
  {
    terminal,
    keep,
    signal,
  }: { readonly terminal?: Terminal; readonly keep?: string; readonly signal: AbortSignal },
): Promise<readonly ShownProduction[]> {
  const key = DeviceKey.generate();
  await partner.enrolDevice(key.deviceId);
  const shown: ShownProduction[] = [];
  for (const production of PRODUCTIONS) shown.push(await show(production));
  return shown;

  async function show({
    name,
    title,
    adverse,
    declaredOrigin,
    expected,
  }: Production): Promise<ShownProduction> {
    const audio = broadcastWave(recording, title);
    const trace = await simulate(key, adverse, createHash('sha256').update(audio).digest('hex'));
    const issued = await partner.issue(audio, title, `${name}.wav`, 'embedded', trace);
    await partner.declare(issued.proofId, {
      declaredOrigin,
      aiShareBand: 'none',
      manualWork: 'substantial',
      aiRoles: ['none'],
    });
    const verification = await partner.client.verifyFile(issued.audio, { signal });
    const proof = await partner.client.readProof(issued.proofId, { signal });
    // The proof has the title and the note, and the verification has the verdict.
    const input = reportInput({ ...proof, ...verification }, partner.serviceUrl);
    if (terminal !== undefined) {
      terminal.print('');
      printReport(input, terminal);
    }
    const page = keep === undefined ? undefined : join(keep, `${name}.html`);
    if (keep !== undefined && page !== undefined) {
      await mkdir(keep, { recursive: true });
      await writeFile(page, renderReportPage(input));
    }
    const conflicts = input.report?.conflicts.length ?? 0;
    const status = verification.decision?.status ?? '';
    return {
      name,
      status,
      conflicts,
      asExpected:
        verification.accepted &&
        status === expected &&
        conflicts > 0 === (expected === 'needs_review') &&
        // The page shows tracks only because the partner is approved and the creator consents.
        (input.report?.sourceDetail?.tracks.length ?? 0) > 0,
      ...(page === undefined ? {} : { page }),
    };
  }
}

async function simulate(
  key: DeviceKey,
  adverse: readonly AdverseScenario[],
  exportSha256: string,
): Promise<Buffer> {
  const to = new MemorySink();
  await simulateTrace({ minutes: 40, seed: 7, adverse, exportSha256, key, to });
  return to.bytes();
}
