/**
 * The process that reads the credentials of strangers. It has no secret, no environment, and only three pipes as
 * descriptors, one of them unconnected. It answers one question at a time, and ends when the service closes its end.
 */
import { X509Certificate } from 'node:crypto';
import { readEmbedded } from '../../../core/credential/read-embedded.js';
import { readSidecar } from '../../../core/credential/sidecar.js';
import { createTrustList } from '../../../core/credential/trust-list.js';
import type { TrustList } from '../../../core/ports/signing.js';
import { FrameCutter, frame } from './frames.js';
import { anchorsIn, MAX_QUESTION_BYTES, questionIn } from './question.js';

const cutter = new FrameCutter(MAX_QUESTION_BYTES);
let trust: TrustList | undefined;

process.stdin.on('data', (piece: Buffer) => {
  for (const payload of cutter.cut(piece))
    process.stdout.write(frame(Buffer.from(JSON.stringify(reply(payload)))));
});
// A signal to the process group, such as Ctrl-C, reaches this process too. The service still has questions
// then, and ends this process by closing its end.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.stdin.once('end', () => process.exit(0));
// The service is gone in the middle of a reply.
process.stdout.on('error', () => process.exit(0));

function reply(payload: Buffer): object {
  if (trust === undefined) {
    const { identities, authorities } = anchorsIn(payload.toString());
    trust = createTrustList(
      identities,
      authorities.map((pem) => new X509Certificate(pem)),
    );
    return { ready: true };
  }
  const question = questionIn(payload);
  return question.kind === 'sidecar'
    ? readSidecar(question.bytes, trust)
    : readEmbedded(question.bytes, question.extent, trust, Math.floor(Date.now() / 1000));
}
