import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isLoopback, isPlain, parseBase, parseResponse, pathPart } from '../client/connection.js';
import { TakemarkError } from '../client/errors.js';
import type { CreatorDeclaration, KeyEntry, PartnerReviewCase } from '../client/index.js';
import { entriesOf } from '../client/pages.js';
import { retrying } from '../client/retry.js';
import type { AudioSource } from '../client/source.js';
import { type Progress, type RequestSpec, Transport } from '../client/transport.js';
import { defined } from '../core/domain/defined.js';
import { challengeKey, challengeNonce, challengeResponse } from '../service/contract/operator-challenge.js';
import { type ClientConfig, RuntimeError, UsageError } from './command.js';
import { type EvidenceFiles, issuingForm } from './issuing-form.js';
import type { ServiceAccess } from './service-access.js';

export interface Partner {
  readonly partnerId: string;
  readonly name: string;
  readonly plan: string;
  readonly nextPlan?: { readonly plan: string; readonly from: number };
  readonly createdAt: number;
  readonly sourceDetail?: { readonly consentVersion: string; readonly approvedAt: number };
}

export interface CreatedKey {
  readonly keyId: string;
  /** The secret. It is shown only in this response. */
  readonly apiKey: string;
  readonly name: string;
}

export interface PlanLimits {
  readonly monthlyQuota: number;
  readonly requestsPerSecond: number;
  readonly burst: number;
  readonly concurrentUploads: number;
  readonly rotationsPerDay: number;
}

export interface Plan extends PlanLimits {
  readonly name: string;
  /** The limits that will replace the current ones. */
  readonly next?: PlanLimits & { readonly from: number };
}

/** The moment from which a plan change applies. */
export interface PlanEffect {
  readonly effect: 'at_once' | 'next_month';
}

/** A signing certificate of the service. Times are in unix seconds. */
export interface SignerEntry {
  readonly kid: string;
  readonly algorithm: string;
  readonly issuer: string;
  readonly notBefore: number;
  readonly notAfter: number;
  readonly signs: boolean;
  readonly revocation?: { readonly from: number; readonly reason: string; readonly at: number };
}

/** A creator's consent to the delivery of a proof's source detail. */
export interface ConsentState {
  readonly proofId: string;
  readonly consent?: { readonly consentVersion: string; readonly grantedAt: number };
}

/** A capture device. Times are in unix seconds. */
export interface DeviceEntry {
  readonly deviceId: string;
  readonly algorithm?: string;
  readonly enrolledAt: number;
  readonly revocation?: { readonly from: number; readonly at: number };
}

export interface ErasureStatus {
  readonly proofId: string;
  readonly state: string;
  /** Unix seconds. */
  readonly erasedAt?: number;
  /** When a consumer confirmed that nothing is left, in unix seconds. */
  readonly confirmedAt?: number;
  readonly assetPresent: boolean;
}

/** One step of an audit pass over the stores. */
export interface AuditStep {
  readonly findings: readonly {
    readonly kind: string;
    readonly subject: string;
    readonly detail: string;
  }[];
  readonly looked: number;
  /** The start of the next step. Absent at the end of the pass. */
  readonly next?: string;
}

export const TOPICS = ['erasure', 'usage', 'retention'] as const;

/** An event that no consumer could process. */
export interface DeadLetter {
  readonly topic: string;
  readonly position: string;
  readonly reason: string;
  /** Unix seconds. */
  readonly at: number;
  readonly eventId?: string;
  readonly kind?: string;
}

/** A creator's recorded survey answers. */
export interface Declaration extends CreatorDeclaration {
  /** False if the declaration was altered in the store. Present in lists only. */
  readonly authentic?: boolean;
}

export interface AuditEntry {
  readonly sequence: number;
  readonly at: number;
  readonly action: string;
  readonly actor: string;
  readonly subjects: readonly string[];
  readonly mac: string;
}

export interface AuditVerification {
  readonly ok: boolean;
  readonly entries: number;
  readonly fault?: { readonly sequence: number; readonly reason: string };
}

export interface IssuedProof {
  readonly proofId: string;
  /** Unix seconds. */
  readonly issuedAt: number;
  readonly carrier: 'embedded' | 'sidecar';
  readonly originalSha256: string;
  readonly boundAudioSha256: string;
  readonly asset: {
    readonly bytes: number;
    readonly sha256: string;
    readonly fileName: string;
    readonly mediaType: string;
    /** Present if a verify of the file needs another purpose than `verify`. */
    readonly uploadPurpose?: string;
  };
  readonly warnings?: readonly { readonly code: string; readonly offset: number }[];
  readonly mended?: {
    readonly sentSha256: string;
    readonly changes: readonly { readonly offset: number; readonly from?: number; readonly to: number }[];
  };
  /** Present only if the service does not know the container of the audio. */
  readonly unknownContainer?: true;
}

export interface IssueCall {
  readonly partnerId: string;
  readonly song: string;
  /** What the caller declares about the song beside its title. */
  readonly declaredSong?: {
    readonly artist?: string;
    readonly release?: string;
    readonly isrc?: string;
  };
  readonly fileName: string;
  readonly carrier: 'embedded' | 'sidecar';
  /** Repairs a WAV file whose break has exactly one repair. */
  readonly mend?: boolean;
  readonly large?: boolean;
  /** States that a file in a format that the service does not know is audio. */
  readonly allowUnknownContainer?: boolean;
  /** Makes a lost response harmless: repeating the call with the same key returns the first result. */
  readonly idempotencyKey: string;
  readonly audio: AudioSource;
  /** The capture trace and the files sent with it. */
  readonly evidence?: EvidenceFiles | undefined;
  readonly onProgress?: (progress: Progress) => void;
}

const RETRY = { maxAttempts: 3, baseDelayMs: 250, maxDelayMs: 10_000 };
const TIMEOUT_MS = 30_000;
/** Longer, because issuing signs the asset and writes it to disk. */
const ISSUE_TIMEOUT_MS = 120_000;
/** Longer, because the service reads and checks every log entry before it responds. */
const AUDIT_TIMEOUT_MS = 600_000;

/** A client for the calls of the operator listener that the command line needs. */
export class OperatorClient {
  readonly #base: URL;
  readonly #token: string;
  readonly #allowPlainHttp: boolean;
  /** The challenge key, derived on first use because the derivation is slow. */
  #challengeKey: Buffer | undefined;
  readonly #signal: AbortSignal;
  readonly #transport: Transport;

  constructor({
    url,
    token,
    signal,
    ca,
    allowPlainHttp,
  }: { readonly url: string; readonly token: string; readonly signal: AbortSignal } & ServiceAccess) {
    this.#base = parseBase(url);
    if (!allowPlainHttp && isPlain(this.#base))
      throw new TypeError('plain http to another machine would expose the operator token');
    this.#transport = new Transport({ ca });
    this.#token = token;
    this.#allowPlainHttp = allowPlainHttp;
    this.#signal = signal;
  }

  /** Never retried: after a lost response the partner may already exist. */
  async createPartner(request: { readonly name: string; readonly plan?: string }): Promise<Partner> {
    return (await this.#post('partners', request)) as Partner;
  }

  async createKey(
    partnerId: string,
    request: { readonly name: string; readonly scopes?: readonly string[]; readonly publicKey?: string },
  ): Promise<CreatedKey> {
    return (await this.#post(`partners/${pathPart(partnerId)}/keys`, request)) as CreatedKey;
  }

  async listPartners(): Promise<readonly Partner[]> {
    return this.#list<Partner>('partners', 'partners');
  }

  async listPlans(): Promise<readonly Plan[]> {
    return this.#list<Plan>('plans', 'plans');
  }

  /** Safe to repeat: an existing plan with the same limits stays unchanged. */
  async createPlan(plan: PlanLimits & { readonly name: string }): Promise<Plan> {
    return (await retrying(RETRY, this.#signal, () => this.#post('plans', plan))) as Plan;
  }

  /** Safe to repeat, as is `assignPlan`. */
  async setPlan(name: string, change: PlanLimits & PlanEffect): Promise<Plan> {
    return (await retrying(RETRY, this.#signal, () =>
      this.#write('PUT', `plans/${pathPart(name)}`, change),
    )) as Plan;
  }

  async assignPlan(partnerId: string, change: { readonly plan: string } & PlanEffect): Promise<Partner> {
    return (await retrying(RETRY, this.#signal, () =>
      this.#write('PUT', `partners/${pathPart(partnerId)}/plan`, change),
    )) as Partner;
  }

  async listPartnerKeys(partnerId: string): Promise<readonly KeyEntry[]> {
    return this.#list<KeyEntry>(`partners/${pathPart(partnerId)}/keys`, 'keys');
  }

  /** Safe to repeat: a revoked key stays revoked. */
  async revokeKey(partnerId: string, keyId: string, successors: boolean): Promise<KeyEntry> {
    const query = successors ? '?successors=true' : '';
    return (await retrying(RETRY, this.#signal, () =>
      this.#post(`partners/${pathPart(partnerId)}/keys/${pathPart(keyId)}/revoke${query}`),
    )) as KeyEntry;
  }

  async listSigners(): Promise<readonly SignerEntry[]> {
    return this.#list<SignerEntry>('signers', 'signers');
  }

  /** Safe to repeat: a second log entry of the same revocation has no effect. */
  async revokeSigner(
    kid: string,
    request: { readonly from: number; readonly reason: string },
  ): Promise<SignerEntry> {
    return (await retrying(RETRY, this.#signal, () =>
      this.#post(`signers/${pathPart(kid)}/revoke`, request),
    )) as SignerEntry;
  }

  async reinstateSigner(kid: string): Promise<SignerEntry> {
    return (await retrying(RETRY, this.#signal, () =>
      this.#post(`signers/${pathPart(kid)}/reinstate`),
    )) as SignerEntry;
  }

  /** Safe to repeat, as are the next three calls: repeating a call changes nothing. */
  async approveSourceDetail(partnerId: string, consentVersion: string): Promise<Partner> {
    return (await retrying(RETRY, this.#signal, () =>
      this.#write('PUT', `partners/${pathPart(partnerId)}/source-detail`, { consentVersion }),
    )) as Partner;
  }

  async withdrawSourceDetail(partnerId: string): Promise<Partner> {
    return (await retrying(RETRY, this.#signal, () =>
      this.#write('DELETE', `partners/${pathPart(partnerId)}/source-detail`),
    )) as Partner;
  }

  async grantConsent(
    proofId: string,
    consent: { readonly consentVersion: string; readonly grantedAt: number },
  ): Promise<ConsentState> {
    return (await retrying(RETRY, this.#signal, () =>
      this.#write('PUT', `proofs/${pathPart(proofId)}/source-detail-consent`, consent),
    )) as ConsentState;
  }

  async revokeConsent(proofId: string): Promise<ConsentState> {
    return (await retrying(RETRY, this.#signal, () =>
      this.#write('DELETE', `proofs/${pathPart(proofId)}/source-detail-consent`),
    )) as ConsentState;
  }

  async listDevices({
    from,
    limit,
  }: {
    readonly from: number;
    readonly limit: number;
  }): Promise<readonly DeviceEntry[]> {
    return this.#list<DeviceEntry>('devices', 'devices', { from: String(from), limit: String(limit) });
  }

  /** Safe to repeat: an enrolled device stays enrolled. */
  async enrolDevice(request: {
    readonly deviceId: string;
    readonly algorithm?: string;
  }): Promise<DeviceEntry> {
    return (await retrying(RETRY, this.#signal, () => this.#post('devices', request))) as DeviceEntry;
  }

  /** Safe to repeat: the earliest revocation applies. */
  async revokeDevice(deviceId: string, request: { readonly from?: number }): Promise<DeviceEntry> {
    return (await retrying(RETRY, this.#signal, () =>
      this.#post(`devices/${pathPart(deviceId)}/revoke`, request),
    )) as DeviceEntry;
  }

  /** Yields a partner's review cases, newest first, across all pages. */
  listReviews(
    partnerId: string,
    filter: { readonly proofId?: string | undefined; readonly status?: string | undefined },
  ): AsyncGenerator<PartnerReviewCase, void, undefined> {
    return entriesOf(async (cursor) => {
      const query: Record<string, string> = defined({ ...filter, limit: '100', cursor });
      const page = await this.#get(`partners/${pathPart(partnerId)}/reviews`, TIMEOUT_MS, query);
      const { reviews, nextCursor } = page as {
        readonly reviews?: readonly PartnerReviewCase[];
        readonly nextCursor?: string;
      };
      if (!Array.isArray(reviews))
        throw new TakemarkError('bad_response', 'the response has no member `reviews`');
      return { entries: reviews, nextCursor };
    });
  }

  async readReview(reviewId: string): Promise<PartnerReviewCase & { readonly partnerId: string }> {
    return (await this.#get(`reviews/${pathPart(reviewId)}`)) as PartnerReviewCase & {
      readonly partnerId: string;
    };
  }

  /** Safe to repeat: a supplied request stays supplied. */
  async supplyEvidence(reviewId: string, requestId: string): Promise<PartnerReviewCase> {
    return (await retrying(RETRY, this.#signal, () =>
      this.#post(`reviews/${pathPart(reviewId)}/evidence-requests/${pathPart(requestId)}/supply`),
    )) as PartnerReviewCase;
  }

  /** Safe to repeat: a registered proof stays unchanged. */
  async importLegacy(
    proof: object,
  ): Promise<{ readonly proofId: string; readonly outcome: 'imported' | 'already_imported' }> {
    return (await retrying(RETRY, this.#signal, () => this.#post('legacy-proofs', proof))) as {
      readonly proofId: string;
      readonly outcome: 'imported' | 'already_imported';
    };
  }

  /** Safe to repeat: a recorded submission stays unchanged. */
  async recordDeclaration(proofId: string, submission: object): Promise<Declaration> {
    return (await retrying(RETRY, this.#signal, () =>
      this.#post(`proofs/${pathPart(proofId)}/declarations`, submission),
    )) as Declaration;
  }

  async listDeclarations(proofId: string): Promise<readonly Declaration[]> {
    return this.#list<Declaration>(`proofs/${pathPart(proofId)}/declarations`, 'declarations');
  }

  async erasureStatus(proofId: string): Promise<ErasureStatus> {
    return (await this.#get(`proofs/${pathPart(proofId)}/erasure`)) as ErasureStatus;
  }

  async listDeadLetters({
    topic,
    limit,
  }: {
    readonly topic?: string | undefined;
    readonly limit: number;
  }): Promise<readonly DeadLetter[]> {
    return this.#list<DeadLetter>('dead-letters', 'deadLetters', {
      ...defined({ topic }),
      limit: String(limit),
    });
  }

  /** Never retried: after a lost response, other letters may be the oldest. */
  async replayDeadLetters(request: { readonly topic: string; readonly limit: number }): Promise<number> {
    return ((await this.#post('dead-letters/replay', request)) as { readonly replayed: number }).replayed;
  }

  /** Never retried: after a lost response, other letters may be the oldest. */
  async discardDeadLetters(request: {
    readonly topic: string;
    readonly limit: number;
  }): Promise<readonly DeadLetter[]> {
    const discarded = await this.#post('dead-letters/discard', request);
    return (discarded as { readonly deadLetters: readonly DeadLetter[] }).deadLetters;
  }

  async readAudit(
    partnerId: string,
    { from, limit }: { readonly from: number; readonly limit: number },
  ): Promise<readonly AuditEntry[]> {
    return this.#list<AuditEntry>(`partners/${pathPart(partnerId)}/audit`, 'entries', {
      from: String(from),
      limit: String(limit),
    });
  }

  async verifyAudit(partnerId: string): Promise<AuditVerification> {
    return (await this.#get(
      `partners/${pathPart(partnerId)}/audit/verification`,
      AUDIT_TIMEOUT_MS,
    )) as AuditVerification;
  }

  async auditStores(from: string | undefined): Promise<AuditStep> {
    const query: Record<string, string> = defined({ from });
    return (await this.#get('audit/stores', AUDIT_TIMEOUT_MS, query)) as AuditStep;
  }

  async issue({
    partnerId,
    song,
    declaredSong = {},
    fileName,
    carrier,
    mend = false,
    large = false,
    allowUnknownContainer = false,
    idempotencyKey,
    audio,
    evidence,
    onProgress,
  }: IssueCall): Promise<IssuedProof> {
    // An older service does not know `mend`, `large`, `unknownContainer` and the members of the declared song.
    const query = {
      partnerId,
      song,
      ...declaredSong,
      fileName,
      carrier,
      ...(mend ? { mend: 'true' } : {}),
      ...(large ? { large: 'true' } : {}),
      ...(allowUnknownContainer ? { unknownContainer: 'allow' } : {}),
    };
    const url = this.#url('proofs', query);
    const { contentType, source } =
      evidence === undefined
        ? { contentType: 'application/octet-stream', source: audio }
        : issuingForm(evidence, audio);
    return retrying(RETRY, this.#signal, async () => {
      const response = await this.#send({
        method: 'POST',
        url,
        headers: {
          'content-type': contentType,
          accept: 'application/json',
          'idempotency-key': idempotencyKey,
        },
        body: { source, onProgress },
        timeoutMs: ISSUE_TIMEOUT_MS,
      });
      return parseResponse(response).value as IssuedProof;
    });
  }

  /** @param receive consumes the file while it arrives. It is called at most once */
  async readAsset(
    proofId: string,
    part: 'audio' | 'sidecar',
    receive: (body: AsyncIterable<Uint8Array>) => Promise<void>,
  ): Promise<void> {
    await this.#send({
      method: 'GET',
      url: this.#url(`proofs/${pathPart(proofId)}/asset`, { part }),
      headers: {},
      timeoutMs: TIMEOUT_MS,
      receive,
    });
  }

  /** Returns the certificates as PEM, the current one first. */
  async authority(): Promise<string> {
    const response = await retrying(RETRY, this.#signal, () =>
      this.#send({ method: 'GET', url: this.#url('authority'), headers: {}, timeoutMs: TIMEOUT_MS }),
    );
    return response.body.toString('utf8');
  }

  close(): void {
    this.#transport.close();
  }

  #post(path: string, value?: object): Promise<object> {
    return this.#write('POST', path, value);
  }

  async #write(method: 'POST' | 'PUT' | 'DELETE', path: string, value?: object): Promise<object> {
    const headers = { accept: 'application/json' };
    const json =
      value === undefined
        ? { headers }
        : {
            headers: { ...headers, 'content-type': 'application/json' },
            body: Buffer.from(JSON.stringify(value)),
          };
    return parseResponse(await this.#send({ method, url: this.#url(path), ...json, timeoutMs: TIMEOUT_MS }))
      .value;
  }

  async #get(
    path: string,
    timeoutMs = TIMEOUT_MS,
    query: Readonly<Record<string, string>> = {},
  ): Promise<object> {
    return retrying(
      RETRY,
      this.#signal,
      async () =>
        parseResponse(
          await this.#send({
            method: 'GET',
            url: this.#url(path, query),
            headers: { accept: 'application/json' },
            timeoutMs,
          }),
        ).value,
    );
  }

  async #list<Entry>(
    path: string,
    member: string,
    query: Readonly<Record<string, string>> = {},
  ): Promise<readonly Entry[]> {
    const entries = ((await this.#get(path, TIMEOUT_MS, query)) as Readonly<Record<string, unknown>>)[member];
    if (!Array.isArray(entries))
      throw new TakemarkError('bad_response', `the response has no member \`${member}\``);
    return entries as Entry[];
  }

  async #send(request: RequestSpec): ReturnType<Transport['send']> {
    await this.#challenge();
    return this.#transport.send({
      ...request,
      headers: { ...request.headers, authorization: `Bearer ${this.#token}` },
      signal: this.#signal,
    });
  }

  /**
   * Checks that the listener knows the token before the token is sent. It runs before each request, because
   * another program may listen by now. Over https the certificate proves the same. An impostor could relay
   * the challenge to the real service, so the answer is valid only for the port that the service names. If a
   * tunnel or a container maps that port, the caller must state that the path is trusted.
   * @throws RuntimeError
   */
  async #challenge(): Promise<void> {
    if (this.#base.protocol === 'https:') return;
    const nonce = challengeNonce();
    const url = this.#url('challenge', { nonce });
    const { value } = parseResponse(
      await this.#transport
        .send({
          method: 'GET',
          url,
          // The listener answers only to its own names, so that no web page can ask. A page cannot set Host.
          headers: { accept: 'application/json', host: 'localhost' },
          timeoutMs: TIMEOUT_MS,
          signal: this.#signal,
        })
        .catch((error: unknown) => {
          throw error instanceof TakemarkError && error.status !== undefined && error.status < 500
            ? this.#stranger()
            : error;
        }),
    );
    const { port, answers } = value as { readonly port?: unknown; readonly answers?: unknown };
    if (typeof port !== 'number' || !Array.isArray(answers)) throw this.#stranger();
    this.#challengeKey ??= challengeKey(this.#token);
    if (!answers.includes(challengeResponse(this.#challengeKey, nonce, port))) throw this.#stranger();
    if (String(port) !== (url.port || '80') && !this.#allowPlainHttp) {
      throw new RuntimeError(
        `the service listens on port ${port}, but ${url.host} is another port. If a trusted tunnel or container forwards the port, give --allow-plain-http. The token was not sent.`,
      );
    }
  }

  #stranger(): RuntimeError {
    return new RuntimeError(
      `the listener at ${this.#base.host} does not know the operator token: it is another program, or a service with another token. The token was not sent.`,
    );
  }

  #url(path: string, query: Readonly<Record<string, string>> = {}): URL {
    const url = new URL(`operator/v1/${path}`, this.#base);
    // URLSearchParams.toString() would encode a space as `+`, which is for forms only.
    url.search = Object.entries(query)
      .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
      .join('&');
    return url;
  }
}

/** Returns the path of the token that the service created on its first start. */
export function operatorTokenPath(dataDirectory: string): string {
  return join(dataDirectory, 'operator-token');
}

/**
 * Returns the token from the environment, or the token that a service on this machine stored.
 * @throws UsageError
 */
export async function findOperatorToken(config: ClientConfig): Promise<string> {
  if (config.operatorToken !== undefined) return config.operatorToken;
  // The token file belongs to the service on this machine, so the token must not go to another machine.
  if (!isLoopback(parseBase(config.operatorUrl)))
    throw new UsageError(
      `TAKEMARK_OPERATOR_URL names another machine (${config.operatorUrl}): set TAKEMARK_OPERATOR_TOKEN to its token`,
    );
  const path = operatorTokenPath(config.dataDirectory);
  const token = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(
      `no operator token: set TAKEMARK_OPERATOR_TOKEN, or TAKEMARK_DATA_DIR to the service's data directory (${path}: ${error.code ?? 'unreadable'})`,
    );
  });
  return token.trim();
}
