import { createHash } from 'node:crypto';
import { type EmbeddingPlan, finishEmbedding } from '../../../core/credential/embed.js';
import type { Measurement } from '../../../core/domain/audio.js';
import type { AudioIngest } from '../../../core/ports/audio-engine.js';
import type { StagedAsset } from '../../ports/assets.js';
import { RIFF_SIZE_AT } from './explain-breaks.js';

/** A credential and the file that it was bound to. */
export interface Bound {
  readonly boundAudioSha256: string;
  readonly credentialSha256: string;
  readonly issued: Measurement;
  readonly sidecar?: Uint8Array;
}

/** The bytes of a RIFF file that contain its id, its size and its form. */
export const RIFF_HEAD_BYTES = 12;

/**
 * A file that gets its credential. One pass over its bytes gives both the digest that the credential binds, and the
 * measurement that a partner's upload of the file would have.
 */
export class IssuedFile {
  readonly plan: EmbeddingPlan;
  readonly #ingest: AudioIngest;
  readonly #binding = createHash('sha256');

  constructor(plan: EmbeddingPlan, ingest: AudioIngest) {
    this.plan = plan;
    this.#ingest = ingest;
  }

  /** Takes the next bytes of the audio. Their RIFF size is that of the plan. */
  async write(chunk: Uint8Array): Promise<void> {
    this.#binding.update(chunk);
    await this.#ingest.write(chunk);
  }

  /** Signs the credential, and ends the file with it. */
  async finish(staged: StagedAsset): Promise<Bound> {
    const boundAudioSha256 = this.#binding.update(new Uint8Array(this.plan.pad)).digest('hex');
    const { bytes, chunkSha256 } = await finishEmbedding(this.plan, boundAudioSha256);
    await staged.append(bytes);
    await this.#ingest.write(bytes);
    return { boundAudioSha256, credentialSha256: chunkSha256, issued: await this.#ingest.end() };
  }

  /** Frees what the measurement holds. It may be called at any time, any number of times. */
  abort(): void {
    this.#ingest.abort();
  }
}

/** Returns the RIFF size field of the planned file. */
export function riffSizeField({ riffSize }: EmbeddingPlan): Uint8Array {
  const field = Buffer.alloc(4);
  field.writeUInt32LE(riffSize);
  return field;
}

/** Returns a copy of the first bytes of a file, with the RIFF size of the planned file. */
export function withRiffSize(head: Uint8Array, plan: EmbeddingPlan): Uint8Array {
  const bytes = Uint8Array.from(head);
  bytes.set(riffSizeField(plan), RIFF_SIZE_AT);
  return bytes;
}

/** Returns the length that a RIFF file states of itself. Returns undefined if the bytes are not the head of one. */
export function statedLength(head: Uint8Array): number | undefined {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength);
  if (bytes.length < RIFF_HEAD_BYTES || bytes.toString('latin1', 0, 4) !== 'RIFF') return undefined;
  return bytes.readUInt32LE(RIFF_SIZE_AT) + 8;
}

/** Yields the bytes of a file in chunks, the first one with the whole RIFF head if the file has one. */
export async function* withWholeHead(audio: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let head: Uint8Array | undefined = new Uint8Array(0);
  for await (const chunk of audio) {
    if (head === undefined) {
      yield chunk;
      continue;
    }
    head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
    if (head.length < RIFF_HEAD_BYTES) continue;
    yield head;
    head = undefined;
  }
  if (head !== undefined && head.length > 0) yield head;
}
