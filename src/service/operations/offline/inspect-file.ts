import { createHash } from 'node:crypto';
import { chunkHeader } from '../../../core/credential/embed.js';
import { readOwnContent } from '../../../core/credential/own-form.js';
import type { CredentialChunk, Measurement } from '../../../core/domain/audio.js';
import { defined } from '../../../core/domain/defined.js';
import { type FoundAt, isBreak } from '../../../core/domain/findings.js';
import type {
  FindingEffect,
  InspectedCredential,
  InspectedFinding,
  Inspection,
} from '../../../core/domain/inspection.js';
import type { EmbeddedParseResult } from '../../../core/domain/parsed-credential.js';
import { refuseFile } from '../../../core/domain/verdict.js';
import type { AudioEngine } from '../../../core/ports/audio-engine.js';
import type { CredentialReader } from '../../ports/credential-reader.js';
import { explainBreaks, issuingBreaks } from '../issuing/explain-breaks.js';
import { measure } from '../issuing/issue-proof.js';
import { findRepair } from '../issuing/repair-wave.js';
import { readOriginal } from './read-original.js';

export interface InspectFileDeps {
  readonly engine: AudioEngine;
  /** A reader that trusts no certificate, because the file alone does not show whom to trust. */
  readonly reader: Pick<CredentialReader, 'readEmbedded'>;
}

/** The owner name of the command line in the reader. */
const OFFLINE = 'offline';

/**
 * Inspects a file without a service, with the core and the reader that a verify uses.
 * @param read opens the file. It is called up to five times
 * @throws DomainError `unavailable` if the credential could not be read, which is not a finding about it
 */
export async function inspectFile(
  { engine, reader }: InspectFileDeps,
  read: () => AsyncIterable<Uint8Array>,
): Promise<Inspection> {
  const measurement = await measure(engine, read(), { samples: true });
  const { samples } = measurement;
  if (samples === undefined) throw new Error('the engine did not measure the samples');
  const { bytes, sha256, container, format, frames, chunks, chunkCount, bindingSha256 } = measurement;
  const embedded =
    measurement.credential === undefined || bindingSha256 === undefined
      ? undefined
      : await reader.readEmbedded(OFFLINE, measurement.credential.data, measurement.credential);
  const objection = refuseFile({ measurement, ...defined({ embedded }) });
  const repair =
    measurement.credential === undefined && container === 'riff'
      ? await findRepair(measurement, read, (audio) => measure(engine, audio))
      : undefined;
  return {
    bytes,
    sha256,
    samples,
    container,
    chunks,
    chunkCount,
    findings: await inspectFindings(measurement, read),
    ...defined({
      format,
      frames,
      mendable: repair && (true as const),
      credential:
        measurement.credential &&
        (await inspectCredential(
          { chunk: measurement.credential, bindingSha256, embedded, isSound: objection === undefined },
          read,
        )),
      objection,
    }),
  };
}

async function inspectFindings(
  measurement: Measurement,
  read: () => AsyncIterable<Uint8Array>,
): Promise<readonly InspectedFinding[]> {
  const { container, findings } = measurement;
  if (findings.length === 0) return [];
  const refused = issuingBreaks(measurement);
  // The explanations are those of issuing, which refuses RF64 and BW64 before it looks at their chunks.
  const isExplained = refused.length > 0 && container !== 'rf64' && container !== 'bw64';
  const explained = isExplained ? await explainBreaks(measurement, refused, read()) : [];
  const effectOf = (finding: FoundAt): FindingEffect =>
    isBreak(finding)
      ? 'unreadable'
      : refused.some(({ slug }) => slug === finding.slug)
        ? 'not_issued'
        : 'none';
  return findings.map((finding) => {
    const { slug: code, offset } = finding;
    const explanation = explained.find(({ slug }) => slug === code);
    const { found, expected } = explanation ?? {};
    return { code, offset, effect: effectOf(finding), ...defined({ found, expected }) };
  });
}

interface ReadCredential {
  readonly chunk: CredentialChunk;
  readonly bindingSha256: string | undefined;
  readonly embedded: EmbeddedParseResult | undefined;
  /** True if a verify would not refuse the file for its structure or its binding. */
  readonly isSound: boolean;
}

async function inspectCredential(
  { chunk, bindingSha256: boundAudioSha256, embedded, isSound }: ReadCredential,
  read: () => AsyncIterable<Uint8Array>,
): Promise<InspectedCredential> {
  const { offset, length, data } = chunk;
  const credentialSha256 = createHash('sha256').update(chunkHeader(data.length)).update(data).digest('hex');
  const place = { offset, length, credentialSha256, ...defined({ boundAudioSha256 }) };
  if (embedded === undefined) return { kind: 'not_read', ...place };
  if (embedded.kind === 'not_a_store') return { kind: 'not_a_store', ...place };
  const { report } = embedded;
  const own = embedded.kind === 'altered' ? undefined : readOwnContent(data);
  if (own === undefined) {
    const { issuer: signer, algorithm } = report;
    const kind = embedded.kind === 'altered' ? 'altered' : 'foreign';
    return { kind, ...place, ...defined({ signer, algorithm }), report };
  }
  // The reader has checked the signature. It reports an unknown signer by the rules for strangers, such as a
  // certificate that is valid today, which a credential of the product does not need.
  const originalSha256 =
    isSound && boundAudioSha256 !== undefined
      ? await sha256Of(readOriginal({ offset, length, boundAudioSha256 }, read))
      : undefined;
  return {
    kind: embedded.kind === 'local_seal' ? 'local_seal' : 'production_record',
    ...place,
    statement: own.statement,
    ...defined({ originalSha256, signer: report.issuer ?? report.device, algorithm: report.algorithm }),
  };
}

async function sha256Of(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256');
  for await (const part of bytes) hash.update(part);
  return hash.digest('hex');
}
