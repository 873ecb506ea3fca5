import { isIP } from 'node:net';
import { defined } from '../../core/domain/defined.js';
import { DomainError } from '../../core/domain/errors.js';
import type { IssuingState } from '../../core/domain/validity.js';
import { type OpenApiDocument, openApiDocument } from '../contract/openapi.js';
import { challengeKeys, challengeResponse } from '../contract/operator-challenge.js';
import { ROUTES } from '../contract/routes/routes.js';
import type { NamedToken } from '../domain/operator-token.js';
import type { OperatorOperations } from '../operations/operations.js';
import { issuingBody, issuingBounds } from './body/issuing-body.js';
import { DEFAULT_LIMITS, type Exchange, type ListenerLimits } from './exchange.js';
import { contentDisposition } from './response/asset-response.js';
import { constantJson, type JsonResponse, json } from './response/response.js';
import { bearerGuard } from './server/checks.js';
import { type Endpoints, joinEndpoints, joinOwn } from './server/endpoint.js';
import { createListener, type Listener, type ListenerParts } from './server/listener.js';

export interface ProbeListenerParts extends ListenerParts {
  /** Returns the metrics as text, with the media type. */
  readonly metrics: () => Promise<{ readonly mediaType: string; readonly text: string }>;
  /**
   * Resolves when the service can serve. Throws DomainError `unavailable` when it cannot. `issuing` is present for a
   * process that issues: a service that cannot issue still verifies, so it stays ready. `missing` names what does
   * not answer, while the process serves other calls.
   */
  readonly ready: () => Promise<{ readonly issuing?: IssuingState; readonly missing?: string[] }>;
  /** The configured host of the listener. The routes without a token accept it, `localhost` and IP addresses. */
  readonly host?: string;
  /**
   * The further host names for metrics and probes. A name that begins with a dot allows every name that ends
   * with it.
   */
  readonly names?: readonly string[];
}

export interface OperatorListenerParts extends ProbeListenerParts {
  readonly operations: OperatorOperations;
  /** The operator's bearer tokens. There are several while a token is being replaced. */
  readonly tokens: readonly string[];
  /** The further tokens, whose names are in the log and in audit entries. */
  readonly namedTokens?: readonly NamedToken[];
}

/**
 * The limits of this listener. Reading a whole audit log or storing an asset can take long before the
 * response begins.
 */
const OPERATOR_LIMITS: ListenerLimits = { ...DEFAULT_LIMITS, stallMs: 900_000 };

/** Creates a listener with only metrics and probes, for a process that serves no API. */
export function createProbeListener(parts: ProbeListenerParts): Listener {
  return createListener(
    'operator',
    joinOwn('operator', probeEndpoints(parts)),
    { ...OPERATOR_LIMITS, ...parts.limits },
    parts,
  );
}

/**
 * Creates the listener for metrics, probes, and the issuer and operator API. None of these routes is
 * reachable from the partner listener.
 */
export function createOperatorListener(parts: OperatorListenerParts): Listener {
  const { operations } = parts;
  /** The challenge keys. They and the document are made on the first request, so that the start does not wait. */
  let keys: Promise<readonly Buffer[]> | undefined;
  const { tokens, namedTokens = [] } = parts;
  let document: JsonResponse<200, OpenApiDocument> | undefined;
  /** The port, known once the listener is bound. */
  let port = 0;
  const endpoints = {
    listPartners: async ({ signal }) =>
      json(200, { partners: await operations.until(signal).listPartners() }),
    listPlans: async ({ signal }) => json(200, { plans: await operations.until(signal).listPlans() }),
    createPlan: async ({ signal, body }) => {
      const { plan, repeated } = await operations.until(signal).createPlan(body);
      return json(repeated ? 200 : 201, plan);
    },
    listPartnerKeys: async ({ signal, params: { partnerId } }) =>
      json(200, { keys: await operations.until(signal).listPartnerKeys(partnerId) }),
    listSigners: async ({ signal }) => json(200, { signers: await operations.until(signal).listSigners() }),
    readAudit: async ({ signal, params: { partnerId }, query: { from, limit } }) =>
      json(200, {
        entries: await operations.until(signal).readAudit({ partnerId, fromSequence: from, limit }),
      }),
    recordDeclaration: async ({ signal, params: { proofId }, body }) => {
      const { declaration, repeated } = await operations.until(signal).recordDeclaration(proofId, body);
      return json(repeated ? 200 : 201, declaration);
    },
    importLegacy: async ({ signal, body }) => {
      const { proofId, outcome } = await operations.until(signal).importLegacy(body);
      return json(outcome === 'imported' ? 201 : 200, { proofId, outcome });
    },
    listDeclarations: async ({ signal, params: { proofId } }) =>
      json(200, { declarations: await operations.until(signal).listDeclarations(proofId) }),
    enrolDevice: async ({ signal, body }) => {
      const { device, repeated } = await operations.until(signal).enrolDevice(body);
      return json(repeated ? 200 : 201, device);
    },
    listDeadLetters: async ({ signal, query: { topic, limit } }) =>
      json(200, {
        deadLetters: await operations.until(signal).listDeadLetters(defined({ topic, limit })),
      }),
    replayDeadLetters: async ({ signal, body: { topic, limit } }) =>
      json(200, { replayed: await operations.until(signal).replayDeadLetters({ topic, limit }) }),
    discardDeadLetters: async ({ signal, body }) =>
      json(200, { deadLetters: await operations.until(signal).discardDeadLetters(body) }),
    readErasure: async ({ signal, params: { proofId } }) =>
      json(200, await operations.until(signal).erasureStatus(proofId)),

    issueProof: async ({
      exchange,
      signal: ended,
      query: { partnerId, song, artist, release, isrc, fileName, carrier, mend, large, unknownContainer },
      headers,
    }) => {
      const idempotencyKey = headers['idempotency-key'];
      const isLarge = large === 'true';
      const bounds = issuingBounds(ROUTES.issueProof.body, exchange.limits, isLarge);
      const { audio, trace, fields, signal, close } = await issuingBody(exchange, bounds);
      try {
        const supplied = Object.fromEntries([...fields].map(([name, text]) => [name, Buffer.from(text)]));
        if (trace === undefined && fields.size > 0)
          throw new DomainError('invalid_request', 'The form has a summary or detections but no trace.', {
            reason: 'trace_missing',
          });
        const evidence = trace === undefined ? undefined : defined({ trace, ...supplied, signal });
        const declaredSong = defined({ artist, release, isrc });
        const { replayed, ...proof } = await operations.until(ended).issueProof(
          defined({
            partnerId,
            songTitle: song,
            declaredSong: Object.keys(declaredSong).length === 0 ? undefined : declaredSong,
            fileName,
            carrier,
            mend: mend === 'true',
            large: isLarge,
            allowUnknownContainer: unknownContainer === 'allow' ? true : undefined,
            audio,
            idempotencyKey,
            evidence,
          }),
        );
        return json(201, proof, replayed ? { 'idempotency-replayed': 'true' } : {});
      } finally {
        close();
      }
    },

    readAsset: async ({ signal, params: { proofId }, query: { part } }) => {
      const { bytes, fileName, mediaType, read } = await operations.until(signal).readAsset(proofId, part);
      const stream = await read();
      return {
        kind: 'stream',
        status: 200,
        mediaType,
        bytes,
        stream,
        headers: { 'Content-Disposition': contentDisposition(fileName) },
      };
    },

    readSnapshot: async ({ signal }) => ({
      kind: 'stream',
      status: 200,
      mediaType: 'application/octet-stream',
      bytes: undefined,
      stream: await operations.until(signal).readSnapshot(),
    }),

    readAuthority: () => ({
      kind: 'text',
      status: 200,
      mediaType: 'application/x-pem-file',
      text: operations.readAuthority(),
    }),

    readOperatorDocument: () => (document ??= constantJson(200, openApiDocument(ROUTES, 'operator'))),

    challenge: async ({ exchange, query: { nonce } }) => {
      // Without this check a web page could get an answer, and test guesses of a weak token against it.
      checkHost(exchange, parts.host === undefined ? [] : [parts.host]);
      keys ??= challengeKeys([...tokens, ...namedTokens.map(({ token }) => token)]);
      return json(200, { port, answers: (await keys).map((key) => challengeResponse(key, nonce, port)) });
    },

    ...probeEndpoints(parts),
  } satisfies Partial<Endpoints<'operator'>>;
  const listener = createListener(
    'operator',
    joinEndpoints('operator', endpoints, operations, { bearer: bearerGuard(tokens, namedTokens) }),
    { ...OPERATOR_LIMITS, ...parts.limits },
    parts,
  );
  return {
    ...listener,
    listen: async (wanted, host) => {
      const bound = await listener.listen(wanted, host);
      port = bound.port;
      return bound;
    },
  };
}

function probeEndpoints(
  parts: ProbeListenerParts,
): Pick<Endpoints<'operator'>, 'metrics' | 'livez' | 'readyz'> {
  const names = [...(parts.host === undefined ? [] : [parts.host]), ...(parts.names ?? [])];
  return {
    metrics: async ({ exchange }) => {
      checkHost(exchange, names);
      return { kind: 'text', status: 200, ...(await parts.metrics()) };
    },
    livez: ({ exchange }) => {
      checkHost(exchange, names);
      return json(200, { ok: true });
    },
    readyz: async ({ exchange }) => {
      checkHost(exchange, names);
      return json(200, { ok: true, ...(await parts.ready()) });
    },
  };
}

/** Throws `forbidden` unless the Host header names this machine. */
function checkHost({ request }: Exchange, configured: readonly string[]): void {
  if (!isOwnHost(request.headers.host, configured))
    throw new DomainError('forbidden', 'The Host header does not name this listener.');
}

/**
 * Returns true when a Host header names this machine. A web page that reaches it through its own name (DNS
 * rebinding) sends that name.
 * @param configured the configured names of the listener
 */
function isOwnHost(host: string | undefined, configured: readonly string[]): boolean {
  // Only HTTP/1.0 omits Host, and browsers do not use HTTP/1.0.
  if (host === undefined || host === '') return true;
  const name = host
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .toLowerCase();
  return (
    isIP(name) !== 0 ||
    name === 'localhost' ||
    configured.some((own) => (own.startsWith('.') ? name.endsWith(own) : name === own.toLowerCase()))
  );
}
