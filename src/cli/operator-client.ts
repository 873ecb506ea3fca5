import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAnswer, parseBase } from '../client/connection.js';
import { retrying } from '../client/retry.js';
import type { AudioSource } from '../client/source.js';
import { Transport, type Exchange, type Progress } from '../client/transport.js';
import { UsageError, type ClientConfig } from './command.js';

export interface Partner {
  readonly partnerId: string;
  readonly name: string;
  readonly plan: string;
  readonly createdAt: number;
}

export interface CreatedKey {
  readonly keyId: string;
  /** Shown once, here. */
  readonly apiKey: string;
  readonly name: string;
}

export interface IssuedProof {
  readonly proofId: string;
  /** Unix seconds. */
  readonly issuedAt: number;
  readonly carrier: 'embedded' | 'sidecar';
  readonly originalSha256: string;
  readonly boundAudioSha256: string;
  readonly asset: { readonly bytes: number; readonly sha256: string; readonly fileName: string; readonly mediaType: string };
}

export interface IssueCall {
  readonly partnerId: string;
  readonly song: string;
  readonly fileName: string;
  readonly carrier: 'embedded' | 'sidecar';
  /** Makes a lost answer harmless: the same call under the same key is answered, not done, again. */
  readonly idempotencyKey: string;
  readonly audio: AudioSource;
  readonly onProgress?: (progress: Progress) => void;
}

const RETRY = { maxAttempts: 3, baseDelayMs: 250, maxDelayMs: 10_000 };
const TIMEOUT_MS = 30_000;
/** Issuing ends with signing and writing the deliverable to disk. */
const ISSUE_TIMEOUT_MS = 120_000;

/** The operator listener, as the command line needs it. */
export class OperatorClient {
  readonly #base: URL;
  readonly #token: string;
  readonly #signal: AbortSignal;
  readonly #transport = new Transport();

  constructor({ url, token, signal }: { readonly url: string; readonly token: string; readonly signal: AbortSignal }) {
    this.#base = parseBase(url);
    this.#token = token;
    this.#signal = signal;
  }

  /** Not repeated: a lost answer may mean a partner that was created. */
  async createPartner(request: { readonly name: string; readonly plan?: string }): Promise<Partner> {
    return (await this.#post('partners', request)) as Partner;
  }

  async createKey(partnerId: string, request: { readonly name: string }): Promise<CreatedKey> {
    return (await this.#post(`partners/${encodeURIComponent(partnerId)}/keys`, request)) as CreatedKey;
  }

  async issue({ partnerId, song, fileName, carrier, idempotencyKey, audio, onProgress }: IssueCall): Promise<IssuedProof> {
    const url = this.#url('proofs', { partnerId, song, fileName, carrier });
    return retrying(RETRY, this.#signal, async () => {
      const answer = await this.#exchange({
        method: 'POST',
        url,
        headers: { 'content-type': 'application/octet-stream', accept: 'application/json', 'idempotency-key': idempotencyKey },
        body: { source: audio, onProgress },
        timeoutMs: ISSUE_TIMEOUT_MS,
      });
      return parseAnswer(answer).value as IssuedProof;
    });
  }

  /** @param receive takes the file as it comes; not called again once it was called */
  async readAsset(proofId: string, part: 'audio' | 'sidecar', receive: (body: AsyncIterable<Uint8Array>) => Promise<void>): Promise<void> {
    await this.#exchange({ method: 'GET', url: this.#url(`proofs/${encodeURIComponent(proofId)}/asset`, { part }), headers: {}, timeoutMs: TIMEOUT_MS, receive });
  }

  /** PEM, the current certificate first. */
  async authority(): Promise<string> {
    const answer = await retrying(RETRY, this.#signal, () => this.#exchange({ method: 'GET', url: this.#url('authority'), headers: {}, timeoutMs: TIMEOUT_MS }));
    return answer.body.toString('utf8');
  }

  close(): void {
    this.#transport.close();
  }

  async #post(path: string, value: object): Promise<object> {
    const headers = { 'content-type': 'application/json', accept: 'application/json' };
    return parseAnswer(await this.#exchange({ method: 'POST', url: this.#url(path), headers, body: Buffer.from(JSON.stringify(value)), timeoutMs: TIMEOUT_MS })).value;
  }

  #exchange(exchange: Exchange): ReturnType<Transport['exchange']> {
    return this.#transport.exchange({ ...exchange, headers: { ...exchange.headers, authorization: `Bearer ${this.#token}` }, signal: this.#signal });
  }

  #url(path: string, query: Readonly<Record<string, string>> = {}): URL {
    const url = new URL(`operator/v1/${path}`, this.#base);
    // Not URLSearchParams.toString(), whose `+` for a space is a form's and not a query's.
    url.search = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&');
    return url;
  }
}

/** Where the service keeps the token that it made on its first start. */
export function operatorTokenPath(dataDirectory: string): string {
  return join(dataDirectory, 'operator-token');
}

/** The token of the environment, else the one the service left on this machine. @throws UsageError */
export async function findOperatorToken(config: ClientConfig): Promise<string> {
  if (config.operatorToken !== undefined) return config.operatorToken;
  // A token found in a file belongs to the service of this machine: it is not sent to another one.
  if (!isLoopback(config.operatorUrl)) throw new UsageError('set TAKEMARK_OPERATOR_TOKEN for a service on another machine');
  const path = operatorTokenPath(config.dataDirectory);
  const token = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`no operator token: set TAKEMARK_OPERATOR_TOKEN, or TAKEMARK_DATA_DIR to the service's data directory (${path}: ${error.code ?? 'unreadable'})`);
  });
  return token.trim();
}

function isLoopback(url: string): boolean {
  const { hostname } = parseBase(url);
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname);
}
