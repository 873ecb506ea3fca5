import { createHash } from 'node:crypto';
import type { ObservedProduction } from '../domain/observed-production.js';
import type { LocalSigner, Signer } from '../ports/signing.js';
import { assertObserved } from './actions.js';
import { assertStatement, isName, isSha256Hex, type Statement } from './statement.js';
import { type Generator, type StoreContent, type StoreForm, storeForm } from './store-form.js';

export const GENERATOR: Generator = { name: 'Takemark', version: '1.0.0' };

/** The position of the credential, known before the audio is hashed. All values are in bytes. */
export interface EmbeddingPlan {
  /** The offset of the chunk header: the length of the plain file, padded to an even number. */
  readonly start: number;
  /** The length of header and store, without the pad byte. */
  readonly chunkLength: number;
  readonly pad: 0 | 1;
  /**
   * The value of the RIFF size field (bytes 4 to 7, little-endian), which must be written before the file is
   * hashed.
   */
  readonly riffSize: number;
  readonly content: Omit<StoreContent, 'binding'>;
  readonly signer: Signer;
}

/** The last bytes of a credentialed file. */
export interface FinishedEmbedding {
  /** The chunk header, the store and, if needed, the pad byte. */
  readonly bytes: Uint8Array;
  /** The SHA-256 of header and store in lower-case hex, as the registry stores it. */
  readonly chunkSha256: string;
}

const CHUNK_HEADER_BYTES = 8;
const SIGNATURE_BYTES = 64;
const MAX_RIFF_SIZE = 0xffff_fffe;

/**
 * Plans the size of a credential. Only the two numbers of the exclusion vary in length, and a longer number
 * never makes a shorter store. So the loop ends, in practice at the third iteration (C2PA 2.2 section 10.4
 * asks for as much).
 * @param request.audioBytes even length of the plain RIFF file without a credential, including its last pad
 * byte
 * @param request.observed what a trace proves of the production. Nothing by default
 * @param request.random cryptographically random bytes
 * @throws RangeError if the result is not a RIFF file, or the signer may not make the statement
 */
export function planEmbedding(request: {
  readonly audioBytes: number;
  readonly statement: Statement;
  readonly observed?: ObservedProduction;
  readonly signer: Signer;
  readonly random: (length: number) => Uint8Array;
  readonly generator?: Generator;
}): EmbeddingPlan {
  const { audioBytes: start, statement, signer, generator = GENERATOR } = request;
  if (!Number.isSafeInteger(start) || start < 12 || start % 2 !== 0)
    throw new RangeError('a RIFF file must have an even length of at least 12 bytes');
  if (!isName(generator.name) || !isName(generator.version))
    throw new RangeError('a generator needs a valid name and version');
  assertStatement(statement, signer.identity);
  const content = {
    manifestUuid: uuid4(request.random(16)),
    generator,
    statement,
    history: { form: 'observed', observed: assertObserved(request.observed) } as const,
    algorithm: signer.identity.algorithm,
    certificate: signer.identity.certificate,
  };
  let chunkLength = 0;
  for (;;) {
    const binding = { exclusion: { start, length: chunkLength }, sha256: '0'.repeat(64) };
    const want =
      CHUNK_HEADER_BYTES + storeForm({ ...content, binding }).write(new Uint8Array(SIGNATURE_BYTES)).length;
    if (want === chunkLength) break;
    chunkLength = want;
  }
  const pad = chunkLength % 2 === 0 ? 0 : 1;
  const riffSize = start + chunkLength + pad - 8;
  // Larger files need RF64, but validators of Content Credentials read only RIFF.
  if (riffSize > MAX_RIFF_SIZE) throw new RangeError('a credentialed file must be smaller than 4 GiB');
  return { start, chunkLength, pad, riffSize, content, signer };
}

/**
 * Signs and writes the credential.
 * @param bindingSha256 lower-case hex SHA-256 over the whole file except the chunk. It covers the plain file
 * with `plan.riffSize` written into it, then one zero byte if `plan.pad` is 1
 */
export async function finishEmbedding(
  plan: EmbeddingPlan,
  bindingSha256: string,
): Promise<FinishedEmbedding> {
  const form = bind(plan, bindingSha256);
  return finish(plan, form, await plan.signer.sign(form.toBeSigned));
}

function bind(plan: EmbeddingPlan, bindingSha256: string): StoreForm {
  if (!isSha256Hex(bindingSha256)) throw new RangeError('a binding needs 64 lower-case hex digits');
  return storeForm({
    ...plan.content,
    binding: { exclusion: { start: plan.start, length: plan.chunkLength }, sha256: bindingSha256 },
  });
}

function finish(plan: EmbeddingPlan, form: StoreForm, signature: Uint8Array): FinishedEmbedding {
  const store = form.write(signature);
  if (CHUNK_HEADER_BYTES + store.length !== plan.chunkLength)
    throw new RangeError('the signature of the signer is not 64 bytes long');
  const chunk = Buffer.concat([chunkHeader(store.length), store]);
  return {
    bytes: Buffer.concat([chunk, Buffer.alloc(plan.pad)]),
    chunkSha256: createHash('sha256').update(chunk).digest('hex'),
  };
}

/**
 * Embeds a credential in a plain RIFF file in memory.
 * @param plain well-formed and without a credential. The pad byte of a last chunk of odd size may be missing
 */
export function embed(
  plain: Uint8Array,
  request: Omit<Parameters<typeof planEmbedding>[0], 'audioBytes' | 'signer'> & {
    readonly signer: LocalSigner;
  },
): { readonly file: Buffer; readonly plan: EmbeddingPlan; readonly chunkSha256: string } {
  const head = Buffer.concat([plain, Buffer.alloc(plain.length % 2)]);
  const plan = planEmbedding({ ...request, audioBytes: head.length });
  head.writeUInt32LE(plan.riffSize, 4);
  const form = bind(plan, createHash('sha256').update(head).update(Buffer.alloc(plan.pad)).digest('hex'));
  const { bytes, chunkSha256 } = finish(plan, form, request.signer.sign(form.toBeSigned));
  return { file: Buffer.concat([head, bytes]), plan, chunkSha256 };
}

/** Returns the chunk header: `C2PA` and the size, little-endian (C2PA 2.2 appendix A.3.6). */
export function chunkHeader(storeBytes: number): Buffer {
  const header = Buffer.alloc(CHUNK_HEADER_BYTES);
  header.write('C2PA', 'latin1');
  header.writeUInt32LE(storeBytes, 4);
  return header;
}

/** Returns a UUID of version 4 (RFC 9562 section 5.4). */
function uuid4(random: Uint8Array): string {
  const bytes = Buffer.from(random.subarray(0, 16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
