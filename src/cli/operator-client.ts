import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isLoopback, isPlain, parseBase, parseResponse, pathPart } from '../client/connection.js';
import { TakemarkError } from '../client/errors.js';
import { entriesOf } from '../client/pages.js';
import { retrying } from '../client/retry.js';
import type { AudioSource } from '../client/source.js';
import { type Progress, type RequestSpec, Transport } from '../client/transport.js';
import { defined } from '../core/domain/defined.js';
import { challengeKey, challengeNonce, challengeResponse } from '../service/contract/operator-challenge.js';
import type { ROUTES, RouteIdOf } from '../service/contract/routes/routes.js';
import type { RequestBodyOf, ResponseBodyOf } from '../service/contract/validation.js';
import { type ClientConfig, RuntimeError, UsageError } from './command.js';
import { type EvidenceFiles, issuingForm } from './issuing-form.js';
import type { ServiceAccess } from './service-access.js';

type OperatorRoute = RouteIdOf<'operator'>;
/** The JSON body of a route's request, and of its response, as the schemas of the contract declare them. */
type RequestOf<Id extends OperatorRoute> = RequestBodyOf<(typeof ROUTES)[Id]>;
export type ResponseOf<Id extends OperatorRoute> = ResponseBodyOf<(typeof ROUTES)[Id]>;

export type Partner = ResponseOf<'createPartner'>;
export type Plan = ResponseOf<'createPlan'>;
export type PlanLimits = Omit<RequestOf<'createPlan'>, 'name'>;
export type SignerEntry = ResponseOf<'revokeSigner'>;
export type ConsentState = ResponseOf<'grantConsent'>;
export type DeviceEntry = ResponseOf<'enrolDevice'>;
export type DeadLetter = ResponseOf<'listDeadLetters'>['deadLetters'][number];
/** A declaration. Only lists say whether it is authentic. */
export type Declaration = ResponseOf<'recordDeclaration'> &
  Partial<ResponseOf<'listDeclarations'>['declarations'][number]>;
export type AuditVerification = ResponseOf<'verifyAudit'>;
export type IssuedProof = ResponseOf<'issueProof'>;
type KeyEntry = ResponseOf<'revokeKey'>;
type ReviewCase = ResponseOf<'supplyEvidence'>;

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
/** Longer, because a busy disk delays the rows. */
const SNAPSHOT_TIMEOUT_MS = 120_000;

type Method = 'POST' | 'PUT' | 'DELETE';

/** A part of a list, from its first position on. */
interface Page {
  readonly from: number;
  readonly limit: number;
}

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
  createPartner(request: RequestOf<'createPartner'>): Promise<Partner> {
    return this.#once<'createPartner'>('POST', 'partners', request);
  }

  createKey(partnerId: string, request: RequestOf<'createKey'>): Promise<ResponseOf<'createKey'>> {
    return this.#once<'createKey'>('POST', `partners/${pathPart(partnerId)}/keys`, request);
  }

  listPartners(): Promise<readonly Partner[]> {
    return this.#list<'listPartners', 'partners'>('partners', 'partners');
  }

  listPlans(): Promise<readonly Plan[]> {
    return this.#list<'listPlans', 'plans'>('plans', 'plans');
  }

  /** Safe to repeat: an existing plan with the same limits stays unchanged. */
  createPlan(plan: RequestOf<'createPlan'>): Promise<Plan> {
    return this.#write<'createPlan'>('POST', 'plans', plan);
  }

  /** Safe to repeat, as is `assignPlan`. */
  setPlan(name: string, change: RequestOf<'setPlan'>): Promise<Plan> {
    return this.#write<'setPlan'>('PUT', `plans/${pathPart(name)}`, change);
  }

  assignPlan(partnerId: string, change: RequestOf<'assignPlan'>): Promise<Partner> {
    return this.#write<'assignPlan'>('PUT', `partners/${pathPart(partnerId)}/plan`, change);
  }

  listPartnerKeys(partnerId: string): Promise<readonly KeyEntry[]> {
    return this.#list<'listPartnerKeys', 'keys'>(`partners/${pathPart(partnerId)}/keys`, 'keys');
  }

  /** Safe to repeat: a revoked key stays revoked. */
  revokeKey(partnerId: string, keyId: string, successors: boolean): Promise<KeyEntry> {
    const query = successors ? '?successors=true' : '';
    const path = `partners/${pathPart(partnerId)}/keys/${pathPart(keyId)}/revoke${query}`;
    return this.#write<'revokeKey'>('POST', path);
  }

  listSigners(): Promise<readonly SignerEntry[]> {
    return this.#list<'listSigners', 'signers'>('signers', 'signers');
  }

  /** Safe to repeat: a second log entry of the same revocation has no effect. */
  revokeSigner(kid: string, request: RequestOf<'revokeSigner'>): Promise<SignerEntry> {
    return this.#write<'revokeSigner'>('POST', `signers/${pathPart(kid)}/revoke`, request);
  }

  reinstateSigner(kid: string): Promise<SignerEntry> {
    return this.#write<'reinstateSigner'>('POST', `signers/${pathPart(kid)}/reinstate`);
  }

  /** Safe to repeat, as are the next three calls: repeating a call changes nothing. */
  approveSourceDetail(partnerId: string, consentVersion: string): Promise<Partner> {
    const path = `partners/${pathPart(partnerId)}/source-detail`;
    return this.#write<'approveSourceDetail'>('PUT', path, { consentVersion });
  }

  withdrawSourceDetail(partnerId: string): Promise<Partner> {
    return this.#write<'withdrawSourceDetail'>('DELETE', `partners/${pathPart(partnerId)}/source-detail`);
  }

  grantConsent(proofId: string, consent: RequestOf<'grantConsent'>): Promise<ConsentState> {
    return this.#write<'grantConsent'>('PUT', `proofs/${pathPart(proofId)}/source-detail-consent`, consent);
  }

  revokeConsent(proofId: string): Promise<ConsentState> {
    return this.#write<'revokeConsent'>('DELETE', `proofs/${pathPart(proofId)}/source-detail-consent`);
  }

  listDevices({ from, limit }: Page): Promise<readonly DeviceEntry[]> {
    return this.#list<'listDevices', 'devices'>('devices', 'devices', pageQuery(from, limit));
  }

  /** Safe to repeat: an enrolled device stays enrolled. */
  enrolDevice(request: RequestOf<'enrolDevice'>): Promise<DeviceEntry> {
    return this.#write<'enrolDevice'>('POST', 'devices', request);
  }

  /** Safe to repeat: the earliest revocation applies. */
  revokeDevice(deviceId: string, request: RequestOf<'revokeDevice'>): Promise<DeviceEntry> {
    return this.#write<'revokeDevice'>('POST', `devices/${pathPart(deviceId)}/revoke`, request);
  }

  /** Yields a partner's review cases, newest first, across all pages. */
  listReviews(
    partnerId: string,
    filter: { readonly proofId?: string | undefined; readonly status?: string | undefined },
  ): AsyncGenerator<ReviewCase, void, undefined> {
    return entriesOf(async (cursor) => {
      const query: Record<string, string> = defined({ ...filter, limit: '100', cursor });
      const path = `partners/${pathPart(partnerId)}/reviews`;
      const page = await this.#get<'listPartnerReviews'>(path, query);
      return { entries: listIn(page, 'reviews'), nextCursor: page.nextCursor };
    });
  }

  readReview(reviewId: string): Promise<ResponseOf<'readPartnerReview'>> {
    return this.#get<'readPartnerReview'>(`reviews/${pathPart(reviewId)}`);
  }

  /** Safe to repeat: a supplied request stays supplied. */
  supplyEvidence(reviewId: string, requestId: string): Promise<ReviewCase> {
    const path = `reviews/${pathPart(reviewId)}/evidence-requests/${pathPart(requestId)}/supply`;
    return this.#write<'supplyEvidence'>('POST', path);
  }

  /** Safe to repeat: a registered proof stays unchanged. */
  importLegacy(proof: object): Promise<ResponseOf<'importLegacy'>> {
    return this.#write<'importLegacy'>('POST', 'legacy-proofs', proof);
  }

  /** Safe to repeat: a recorded submission stays unchanged. */
  recordDeclaration(proofId: string, submission: object): Promise<Declaration> {
    return this.#write<'recordDeclaration'>('POST', `proofs/${pathPart(proofId)}/declarations`, submission);
  }

  listDeclarations(proofId: string): Promise<readonly Declaration[]> {
    const path = `proofs/${pathPart(proofId)}/declarations`;
    return this.#list<'listDeclarations', 'declarations'>(path, 'declarations');
  }

  erasureStatus(proofId: string): Promise<ResponseOf<'readErasure'>> {
    return this.#get<'readErasure'>(`proofs/${pathPart(proofId)}/erasure`);
  }

  listDeadLetters({
    topic,
    limit,
  }: {
    readonly topic?: string | undefined;
    readonly limit: number;
  }): Promise<readonly DeadLetter[]> {
    const query: Record<string, string> = defined({ topic, limit: String(limit) });
    return this.#list<'listDeadLetters', 'deadLetters'>('dead-letters', 'deadLetters', query);
  }

  /** Never retried: after a lost response, other letters may be the oldest. */
  async replayDeadLetters(request: RequestOf<'replayDeadLetters'>): Promise<number> {
    return (await this.#once<'replayDeadLetters'>('POST', 'dead-letters/replay', request)).replayed;
  }

  /** Never retried: after a lost response, other letters may be the oldest. */
  async discardDeadLetters(request: RequestOf<'discardDeadLetters'>): Promise<readonly DeadLetter[]> {
    return (await this.#once<'discardDeadLetters'>('POST', 'dead-letters/discard', request)).deadLetters;
  }

  readAudit(partnerId: string, { from, limit }: Page): Promise<ResponseOf<'readAudit'>['entries']> {
    const path = `partners/${pathPart(partnerId)}/audit`;
    return this.#list<'readAudit', 'entries'>(path, 'entries', pageQuery(from, limit));
  }

  verifyAudit(partnerId: string): Promise<AuditVerification> {
    return this.#get<'verifyAudit'>(
      `partners/${pathPart(partnerId)}/audit/verification`,
      {},
      AUDIT_TIMEOUT_MS,
    );
  }

  auditStores(from: string | undefined): Promise<ResponseOf<'auditStores'>> {
    return this.#get<'auditStores'>('audit/stores', defined({ from }), AUDIT_TIMEOUT_MS);
  }

  fillSamples(from: string | undefined): Promise<ResponseOf<'fillSamples'>> {
    const query = from === undefined ? '' : `?${new URLSearchParams({ from })}`;
    return this.#write<'fillSamples'>('POST', `samples/fill${query}`, undefined, AUDIT_TIMEOUT_MS);
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
      return parseResponse(response).value as unknown as IssuedProof;
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

  /** @param receive consumes the rows of the store while they arrive. It is called at most once */
  async readSnapshot(receive: (body: AsyncIterable<Uint8Array>) => Promise<void>): Promise<void> {
    await this.#send({
      method: 'GET',
      url: this.#url('snapshot'),
      headers: {},
      timeoutMs: SNAPSHOT_TIMEOUT_MS,
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

  /** Sends a call that may be repeated after a failure. */
  #write<Id extends OperatorRoute>(
    method: Method,
    path: string,
    value?: object,
    timeoutMs?: number,
  ): Promise<ResponseOf<Id>> {
    return retrying(RETRY, this.#signal, () => this.#once<Id>(method, path, value, timeoutMs));
  }

  async #once<Id extends OperatorRoute>(
    method: Method,
    path: string,
    value?: object,
    timeoutMs = TIMEOUT_MS,
  ): Promise<ResponseOf<Id>> {
    const headers = { accept: 'application/json' };
    const json =
      value === undefined
        ? { headers }
        : {
            headers: { ...headers, 'content-type': 'application/json' },
            body: Buffer.from(JSON.stringify(value)),
          };
    const response = await this.#send({ method, url: this.#url(path), ...json, timeoutMs });
    return parseResponse(response).value as ResponseOf<Id>;
  }

  #get<Id extends OperatorRoute>(
    path: string,
    query: Readonly<Record<string, string>> = {},
    timeoutMs = TIMEOUT_MS,
  ): Promise<ResponseOf<Id>> {
    const url = this.#url(path, query);
    const headers = { accept: 'application/json' };
    return retrying(
      RETRY,
      this.#signal,
      async () =>
        parseResponse(await this.#send({ method: 'GET', url, headers, timeoutMs })).value as ResponseOf<Id>,
    );
  }

  async #list<Id extends OperatorRoute, Name extends keyof ResponseOf<Id> & string>(
    path: string,
    member: Name,
    query: Readonly<Record<string, string>> = {},
  ): Promise<ResponseOf<Id>[Name]> {
    return listIn(await this.#get<Id>(path, query), member);
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
    const parameters = Object.entries(query);
    // A path may have a query of its own.
    if (parameters.length === 0) return url;
    // URLSearchParams.toString() would encode a space as `+`, which is for forms only.
    url.search = parameters.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&');
    return url;
  }
}

/** @throws TakemarkError `bad_response` if the member is not a list */
function listIn<Body, Name extends keyof Body & string>(body: Body, member: Name): Body[Name] {
  if (!Array.isArray(body[member]))
    throw new TakemarkError('bad_response', `the response has no member \`${member}\``);
  return body[member];
}

function pageQuery(from: number, limit: number): Readonly<Record<string, string>> {
  return { from: String(from), limit: String(limit) };
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
