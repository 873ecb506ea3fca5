/** Tests that a changed bit of a trace is reported by the service, or nothing is issued. */
import { createHash } from 'node:crypto';
import { test } from 'tap';
import { SeededRandom } from '../../src/cli/specimens/random.js';
import type { EvidenceReport } from '../../src/witness/domain/evidence-report.js';
import { SESSION, writeTrace } from '../capture/write-trace.js';
import { sized } from '../fixtures/sampling.js';
import { TestService } from '../fixtures/service.js';
import { wav } from '../fixtures/wav.js';

const TRIALS = sized(40, 16);
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

test('any bit of a trace that was changed shows in the report, or refuses the issuing', async (t) => {
  const service = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' });
  t.teardown(() => service.stop());
  const { operations, operatorToken } = service.service;
  const { partnerId, apiKey } = await service.partner();
  const audio = wav(9600);
  const { bytes, key } = await writeTrace(async (writer) => {
    for (const event of SESSION.slice(0, 12)) writer.append(event);
    await writer.flush();
    for (const event of SESSION.slice(12))
      writer.append(event.kind === 'export.finished' ? { ...event, fileSha256: sha256(audio) } : event);
    await writer.seal();
  });
  await operations.operator.enrolDevice({ deviceId: key.deviceId });

  const proofs = new Set<string>();
  const issue = async (trace: Uint8Array) => {
    const form = new FormData();
    form.set('trace', new Blob([Uint8Array.from(trace)]), 'take.trace');
    form.set('file', new Blob([Uint8Array.from(audio)]), 'take.wav');
    const query = new URLSearchParams({
      partnerId,
      song: 'Take one',
      fileName: 'take.wav',
      carrier: 'embedded',
    });
    const response = await fetch(`${service.operatorUrl}/operator/v1/proofs?${query}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${operatorToken}` },
      body: form,
    });
    const body = (await response.json()) as Readonly<Record<'proofId' | 'reason' | 'error', string>>;
    if (response.status !== 201) return { status: response.status, ...body };
    proofs.add(body.proofId);
    const read = await fetch(`${service.partnerUrl}/v1/proofs/${body.proofId}`, {
      headers: { 'x-api-key': apiKey },
    });
    const { evidenceReport } = (await read.json()) as { evidenceReport: EvidenceReport };
    const { facts, conflicts, unverifiable, session } = evidenceReport;
    const codes = [...facts, ...conflicts, ...unverifiable].map(({ code }) => code);
    t.equal(session?.evidence.traceSha256, sha256(trace), 'the report is of the very trace');
    // A missing export follows from the damage, and does not report the damage itself.
    const findings = codes.filter((code) => code.startsWith('trace_') && code !== 'trace_export_missing');
    return { status: 201, findings };
  };
  t.strictSame(await issue(bytes), { status: 201, findings: [] }, 'the trace as it was sealed');

  const random = new SeededRandom(14);
  const [said, refused] = [new Set<string>(), new Set<string>()];
  for (let trial = 0; trial < TRIALS; trial += 1) {
    const bit = random.whole(0, bytes.length * 8 - 1);
    const changed = Buffer.from(bytes);
    changed[bit >> 3]! ^= 1 << (bit & 7);
    const answer = await issue(changed);
    if ('findings' in answer) {
      t.ok(answer.findings.length > 0, `bit ${bit}: ${answer.findings.join()}`);
      for (const code of answer.findings) said.add(code);
    } else {
      t.equal(answer.status, 422, `bit ${bit}`);
      t.match(answer, { reason: /^trace_/, error: /\w \w/ }, `bit ${bit}: ${answer.error}`);
      refused.add(answer.reason);
    }
  }
  t.ok(said.size > 1 && refused.size > 0, `both happened: ${[...said].join()}; ${[...refused].join()}`);
  const listed = await fetch(`${service.partnerUrl}/v1/proofs?limit=100`, {
    headers: { 'x-api-key': apiKey },
  });
  const { proofs: entries } = (await listed.json()) as { proofs: readonly { readonly proofId: string }[] };
  t.strictSame(new Set(entries.map(({ proofId }) => proofId)), proofs, 'what was refused is not registered');
});
