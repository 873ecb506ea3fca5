import { createHash } from 'node:crypto';
import type { ObservedProduction } from '../domain/observed-production.js';
import type { LocalSigner, Signer } from '../ports/signing.js';
import { assertObserved } from './actions.js';
import { assertStatement, isName, isSha256Hex, type Statement } from './statement.js';
import { type Generator, type StoreContent, type StoreForm, storeForm } from './store-form.js';

export const GENERATOR: Generator = { name: 'Takemark', version: '1.0.0' };

/** Place of the credential, known before the audio has been hashed. All values in bytes. */
export interface EmbeddingPlan {
  /** Offset of the chunk header: the length of the plain file, padded to even. */
  readonly start: number;
  /** Length of header and store, without the pad byte. */
  readonly chunkLength: number;
  readonly pad: 0 | 1;
  /** Value that the RIFF size field (bytes 4 to 7, little-endian) must have before the file is hashed. */
  readonly riffSize: number;
  readonly content: Omit<StoreContent, 'binding'>;
  readonly signer: Signer;
}

/** Last bytes of a credentialed file. */
export interface FinishedEmbedding {
  /** Chunk header, store, and the pad byte where there is one. */
  readonly bytes: Uint8Array;
  /** Lower-case hex SHA-256 of header and store, as the registry keeps it. */
  readonly chunkSha256: string;
}

const CHUNK_HEADER_BYTES = 8;
const SIGNATURE_BYTES = 64;
const MAX_RIFF_SIZE = 0xffff_fffe;

/**
 * Plans the size of a credential. Only the two numbers of the exclusion vary in length, and a longer number
 * never makes a shorter store. So the loop reaches a length that fits, in practice on its third turn (C2PA
 * 2.2 section 10.4 asks for as much).
 * @param request.audioBytes length of the plain RIFF file without any credential, its last pad byte included:
 * even
 * @param request.observed what a trace proves of the production; nothing by default
 * @param request.random cryptographically random bytes
 * @throws RangeError if the result is no RIFF file, or the statement is not the signer's to make
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
    throw new RangeError('a RIFF file has an even length of at least 12 bytes');
  if (!isName(generator.name) || !isName(generator.version))
    throw new RangeError('a generator has a name and a version');
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
  // RF64 begins where the 32-bit size ends, and validators of Content Credentials read RIFF alone.
  if (riffSize > MAX_RIFF_SIZE) throw new RangeError('a credentialed file stays below 4 GiB');
  return { start, chunkLength, pad, riffSize, content, signer };
}

/**
 * Signs and writes the credential.
 * @param bindingSha256 lower-case hex SHA-256 over the whole file but the chunk: the plain file with
 * `plan.riffSize` written into it, then one zero byte where `plan.pad` is 1
 */
export async function finishEmbedding(
  plan: EmbeddingPlan,
  bindingSha256: string,
): Promise<FinishedEmbedding> {
  const form = bind(plan, bindingSha256);
  return finish(plan, form, await plan.signer.sign(form.toBeSigned));
}

function bind(plan: EmbeddingPlan, bindingSha256: string): StoreForm {
  if (!isSha256Hex(bindingSha256)) throw new RangeError('a binding is 64 lower-case hex digits');
  return storeForm({
    ...plan.content,
    binding: { exclusion: { start: plan.start, length: plan.chunkLength }, sha256: bindingSha256 },
  });
}

function finish(plan: EmbeddingPlan, form: StoreForm, signature: Uint8Array): FinishedEmbedding {
  const store = form.write(signature);
  if (CHUNK_HEADER_BYTES + store.length !== plan.chunkLength)
    throw new RangeError('the signer gave a signature of another length than 64 bytes');
  const chunk = Buffer.concat([chunkHeader(store.length), store]);
  return {
    bytes: Buffer.concat([chunk, Buffer.alloc(plan.pad)]),
    chunkSha256: createHash('sha256').update(chunk).digest('hex'),
  };
}

/**
 * Credentialed form of a plain RIFF file that is in memory.
 * @param plain well-formed and without a credential; a last chunk of odd size may lack its pad byte
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

/** Chunk header: `C2PA` and the size, little-endian (C2PA 2.2 appendix A.3.6). */
export function chunkHeader(storeBytes: number): Buffer {
  const header = Buffer.alloc(CHUNK_HEADER_BYTES);
  header.write('C2PA', 'latin1');
  header.writeUInt32LE(storeBytes, 4);
  return header;
}

/** UUID of version 4, RFC 9562 section 5.4. */
function uuid4(random: Uint8Array): string {
  const bytes = Buffer.from(random.subarray(0, 16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
