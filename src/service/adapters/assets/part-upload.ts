import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import type { ByteRange } from '../../ports/assets.js';
import { inTime, statusOf } from './bucket-connection.js';
import type { SpoolFile } from './spool-file.js';

/** The place of an object. */
export interface ObjectName {
  readonly Bucket: string;
  readonly Key: string;
}

/**
 * The bytes of a part. An ordinary asset is shorter, and is sent in one request. The 10,000 parts that S3 allows hold
 * the largest file that an operator can allow, which has 1 TiB.
 */
export const PART_BYTES = 128 << 20;
/** Milliseconds until the bucket has accepted a body, and in addition its least rate in bytes per millisecond. */
const PUT_MS = 120_000;
const LEAST_PUT_RATE = 1024;
/** Milliseconds in which the bucket must accept some bytes of a body, or answer. */
const SILENT_MS = 15_000;
const PUT_ATTEMPTS = 3;
/** Milliseconds in which the bucket must begin or abort an upload in parts. */
const ANSWER_MS = 10_000;

/** A body as a request has it. The bucket compares its digest, and refuses what was damaged on its way. */
export interface Body {
  readonly ContentLength: number;
  readonly ContentMD5: string;
  readonly Body: Readable;
}

/** Options of a request with a body. */
export interface BodyOptions {
  readonly requestTimeout: number;
  readonly abortSignal: AbortSignal;
}

/**
 * Sends bytes of a file, and repeats the request if it may succeed then.
 * @param signal ends the request when it aborts
 */
export async function sendBody<Answer>(
  {
    spool,
    range,
    signal,
  }: { readonly spool: SpoolFile; readonly range: ByteRange; readonly signal?: AbortSignal },
  request: (body: Body, options: BodyOptions) => Promise<Answer>,
): Promise<Answer> {
  const md5 = createHash('md5');
  for await (const chunk of spool.read(range)) md5.update(chunk as Uint8Array);
  const content = { ContentLength: range.end - range.start + 1, ContentMD5: md5.digest('base64') };
  const requestTimeout = PUT_MS + content.ContentLength / LEAST_PUT_RATE;
  for (let attempt = 1; ; attempt += 1) {
    const silence = new AbortController();
    const timer = setTimeout(() => silence.abort(), SILENT_MS);
    const abortSignal = signal === undefined ? silence.signal : AbortSignal.any([silence.signal, signal]);
    const body = Readable.from(
      reported(spool.read(range), () => void timer.refresh()),
      { objectMode: false },
    );
    try {
      return await request({ ...content, Body: body }, { requestTimeout, abortSignal });
    } catch (error) {
      // The client never repeats a request whose body is a stream, because it would send the rest of it.
      if (attempt === PUT_ATTEMPTS || abortSignal.aborted || !isTransient(error)) throw error;
    } finally {
      clearTimeout(timer);
      body.destroy();
    }
  }
}

/**
 * An object that is sent in parts while its file grows. A part whose bytes change later is sent again. One part is sent
 * at a time. `deleteUnfinished` of the store deletes the parts that a kill leaves.
 */
export class PartUpload {
  readonly #client: S3Client;
  readonly #name: ObjectName;
  readonly #spool: SpoolFile;
  readonly #partBytes: number;
  readonly #stopped = new AbortController();
  /** The tag of each part, by its place. It is undefined for a part that has to be sent again. */
  readonly #tags: (string | undefined)[] = [];
  #uploadId: string | undefined;
  #sending: Promise<void> = Promise.resolve();

  constructor(client: S3Client, name: ObjectName, spool: SpoolFile, partBytes: number) {
    this.#client = client;
    this.#name = name;
    this.#spool = spool;
    this.#partBytes = partBytes;
  }

  /** Returns true if the object is sent in parts. */
  get hasBegun(): boolean {
    return this.#tags.length > 0;
  }

  /**
   * Begins to send each part that is complete and is not the last one. Waits while an earlier part is sent, so that a
   * slow bucket slows down the sender of the file.
   * @throws the failure of an earlier part
   */
  async advance(): Promise<void> {
    while ((this.#tags.length + 1) * this.#partBytes < this.#spool.length) {
      await this.#sending;
      const index = this.#tags.push(undefined) - 1;
      this.#sending = this.#send(index);
      // The next call, or the end of the upload, reports a failure.
      this.#sending.catch(() => undefined);
    }
  }

  /** Notes that bytes of the file are about to change. Resolves when no part is being sent. */
  async change(offset: number, length: number): Promise<void> {
    await this.#sending;
    const last = Math.min(Math.floor((offset + length - 1) / this.#partBytes), this.#tags.length - 1);
    for (let index = Math.floor(offset / this.#partBytes); index <= last; index += 1)
      this.#tags[index] = undefined;
  }

  /** Sends the rest of the file, and makes the object. */
  async complete(): Promise<void> {
    await this.#sending;
    const count = Math.ceil(this.#spool.length / this.#partBytes);
    for (let index = 0; index < count; index += 1)
      if (this.#tags[index] === undefined) await this.#send(index);
    const Parts = this.#tags.map((ETag, index) => ({ ETag, PartNumber: index + 1 }));
    try {
      await this.#client.send(
        new CompleteMultipartUploadCommand({
          ...this.#name,
          UploadId: this.#uploadId,
          MultipartUpload: { Parts },
        }),
        // Some buckets copy all parts before they answer.
        { requestTimeout: PUT_MS + this.#spool.length / LEAST_PUT_RATE },
      );
    } catch (error) {
      // An earlier attempt whose answer was lost has made the object. The caller looks at its length.
      if (statusOf(error) !== 404) throw error;
    }
    this.#uploadId = undefined;
  }

  /** Ends the upload, and has the bucket delete its parts. It may be called any number of times. */
  async abort(): Promise<void> {
    this.#stopped.abort();
    await this.#sending.catch(() => undefined);
    if (this.#uploadId === undefined) return;
    // What cannot be deleted now is deleted with the reservation of the id.
    await this.#client
      .send(new AbortMultipartUploadCommand({ ...this.#name, UploadId: this.#uploadId }), inTime(ANSWER_MS))
      .catch(() => undefined);
    this.#uploadId = undefined;
  }

  async #send(index: number): Promise<void> {
    this.#uploadId ??= await this.#begin();
    const start = index * this.#partBytes;
    const end = Math.min(start + this.#partBytes, this.#spool.length) - 1;
    const part = { ...this.#name, UploadId: this.#uploadId, PartNumber: index + 1 };
    const { ETag: tag } = await sendBody(
      { spool: this.#spool, range: { start, end }, signal: this.#stopped.signal },
      (body, options) => this.#client.send(new UploadPartCommand({ ...part, ...body }), options),
    );
    if (tag === undefined) throw new Error('the bucket returns no tag for a part');
    this.#tags[index] = tag;
  }

  async #begin(): Promise<string> {
    const { UploadId: uploadId } = await this.#client.send(
      new CreateMultipartUploadCommand(this.#name),
      inTime(ANSWER_MS),
    );
    if (uploadId === undefined) throw new Error('the bucket returns no id for an upload in parts');
    return uploadId;
  }
}

/** Yields the chunks, and calls `report` before each of them. */
async function* reported(chunks: Readable, report: () => void): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    report();
    yield chunk as Uint8Array;
  }
}

/** Returns true if the same request may succeed later: the bucket was not reached, or reports a fault of its own. */
function isTransient(error: unknown): boolean {
  const status = statusOf(error);
  return status === undefined || status >= 500 || status === 429;
}
