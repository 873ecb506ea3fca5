/**
 * Proofs with as much evidence as one report shows. They are the most expensive to list, to read and to
 * verify.
 */
import { createHash } from 'node:crypto';
import { writeTrace } from '../../capture/write-trace.js';
import { wav } from '../../fixtures/wav.js';
import type { ConfinedService } from './confined-service.js';

const IMPORTS = 256;
const CLIPS_OF_IMPORT = 33;
const AUDIO = wav(2000);

/** Returns a trace with 256 imports and 8,448 clips. Each clip shows an import. */
export async function richTrace(): Promise<Buffer> {
  const { bytes } = await writeTrace(async (writer) => {
    let at = 0;
    writer.append({ kind: 'session.opened', at, sampleRate: 48_000 });
    for (let track = 1; track <= 16; track += 1)
      writer.append({ kind: 'track.added', at: (at += 1), track, type: 'audio' });
    for (let source = 1; source <= IMPORTS; source += 1) {
      const digest = (what: string): string => createHash('sha256').update(`${what} ${source}`).digest('hex');
      writer.append({
        kind: 'import.added',
        at: (at += 1000),
        source,
        manner: 'copied',
        samplesSha256: digest('samples'),
        originalSha256: digest('file'),
        frames: 480_000,
        rate: 48_000,
        channels: 2,
      });
    }
    for (let clip = 1; clip <= IMPORTS * CLIPS_OF_IMPORT; clip += 1) {
      const source = 1 + (clip % IMPORTS);
      // The clips have gaps, so that no two of them are shown as one span.
      const shown = { base: 'seconds', start: clip * 1.5, length: 1 } as const;
      writer.append({
        kind: 'clip.created',
        at: (at += 1000),
        clip,
        track: 1 + (clip % 16),
        source,
        ...shown,
      });
      if (clip % 1024 === 0) await writer.flush();
    }
    await writer.seal();
  });
  return bytes;
}

/** Issues a proof with a trace. */
export async function issueWithTrace(
  service: ConfinedService,
  partnerId: string,
  trace: Uint8Array,
  song: string,
): Promise<string> {
  const form = new FormData();
  form.append('trace', new Blob([Buffer.from(trace)]), 'trace');
  form.append('file', new Blob([Buffer.from(AUDIO)]), 'take.wav');
  const query = new URLSearchParams({ partnerId, song, fileName: 'take.wav', carrier: 'embedded' });
  const response = await fetch(`${service.operatorUrl}/proofs?${query}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.token}` },
    body: form,
  });
  if (!response.ok) throw new Error(`issue: ${response.status} ${await response.text()}`);
  return ((await response.json()) as { proofId: string }).proofId;
}

/** Issues rich proofs. If `detail` is set, the creator consents to their source detail. */
export async function issueRich(
  service: ConfinedService,
  partnerId: string,
  count: number,
  { detail = false }: { readonly detail?: boolean } = {},
): Promise<readonly string[]> {
  const trace = await richTrace();
  const proofIds: string[] = [];
  for (let at = 0; at < count; at += 1) {
    const proofId = await issueWithTrace(service, partnerId, trace, `Rich ${at}`);
    proofIds.push(proofId);
    if (detail)
      await service.operator('PUT', `/proofs/${proofId}/source-detail-consent`, {
        consentVersion: 'v1',
        grantedAt: Math.floor(Date.now() / 1000),
      });
  }
  if (detail) await service.operator('PUT', `/partners/${partnerId}/source-detail`, { consentVersion: 'v1' });
  return proofIds;
}
