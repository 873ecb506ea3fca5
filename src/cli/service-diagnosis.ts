import { once } from 'node:events';
import { connect } from 'node:tls';
import { parseBase } from '../client/connection.js';
import { TakemarkError } from '../client/errors.js';
import { type Client, createClient } from '../client/index.js';
import { Transport } from '../client/transport.js';
import type { Health, KeyEntry } from '../client/types.js';
import { CONTRACT_MAJOR } from '../client/version.js';
import { readApiKey } from '../domain/partner-key.js';
import { runtimeWarning, runtimeWords } from '../domain/runtime-support.js';
import { type ClientConfig, type Context, UsageError } from './command.js';
import { commonClientOptions, partnerAccess } from './commands/partner-account.js';
import { serviceAccess } from './service-access.js';
import { serviceErrorText } from './service-errors.js';
import { formatTime } from './terminal.js';

/** Finding of the diagnosis: `fail` keeps a partner from verifying, `warn` will, or may. */
export interface Diagnosed {
  readonly name: string;
  readonly verdict: 'ok' | 'warn' | 'fail' | 'not_checked';
  readonly found: string;
  /** To be done about it; absent where nothing is. */
  readonly advice?: string;
}

const LOOK_MS = 10_000;
/** Signed calls are refused beyond a minute (RFC 9421, section 2.3); half of it is worth a word. */
const CLOCK_WARN_SECONDS = 30;
const CERTIFICATE_WARN_DAYS = 14;
const DAY_MS = 86_400_000;

/**
 * Looks at everything between a partner and a verdict: Node, address, TLS, service, clock, key, scopes, quota. Reads
 * alone, and costs no unit. Where one thing keeps others from being looked at, they are `not_checked`.
 */
export async function diagnose(context: Context): Promise<readonly Diagnosed[]> {
  const { config } = context;
  const node = diagnoseNode();
  const seen = await lookAtService(context);
  const form = diagnoseKeyForm(config.apiKey, seen.health?.environment);
  if (seen.health === undefined || form.verdict === 'fail')
    return [node, ...seen.checks, form, ...notChecked(['key', 'scopes', 'quota'])];
  return [node, ...seen.checks, form, ...(await diagnoseKey(context, form.keyId))];
}

function notChecked(names: readonly string[]): Diagnosed[] {
  return names.map((name) => ({ name, verdict: 'not_checked', found: 'what stands above comes first' }));
}

function diagnoseNode(): Diagnosed {
  const warning = runtimeWarning(process.version, Date.now());
  return warning === undefined
    ? { name: 'node', verdict: 'ok', found: process.version }
    : {
        name: 'node',
        verdict: 'warn',
        found: process.version,
        advice: runtimeWords(warning),
      };
}

/** Asks for the service's health, without the key. */
async function lookAtService(
  context: Context,
): Promise<{ readonly checks: readonly Diagnosed[]; readonly health?: Health }> {
  const { config, version, signal } = context;
  const rest = () => notChecked(['tls', 'service', 'clock']);
  let transport: Transport | undefined;
  try {
    // No secret is sent, so plain HTTP shows none.
    const { ca } = await serviceAccess({ ...config, allowPlainHttp: true }, config.url);
    transport = new Transport({ ca, userAgent: `takemark-cli/${version}` });
    const sentAt = Date.now();
    const url = new URL('v1/health', parseBase(config.url));
    const { headers, body } = await transport.send({
      method: 'GET',
      url,
      headers: { accept: 'application/json' },
      signal,
      timeoutMs: LOOK_MS,
    });
    const receivedAt = Date.now();
    const health = healthOf(body);
    const address: Diagnosed = { name: 'address', verdict: 'ok', found: `${config.url} answers` };
    if (health === undefined)
      return {
        checks: [
          {
            name: 'address',
            verdict: 'fail',
            found: `${config.url} answers, but not as a Takemark does`,
            advice: 'ask the operator for the address; --url or TAKEMARK_URL names it',
          },
          ...rest(),
        ],
      };
    return {
      health,
      checks: [
        address,
        await diagnoseTls(url, config, ca),
        diagnoseContract(health),
        diagnoseClock(headers.date, (sentAt + receivedAt) / 2),
      ],
    };
  } catch (error) {
    if (signal.aborted) throw error;
    const found =
      error instanceof UsageError ? error.message : serviceErrorText(error, 'partner', config.url);
    const advice = 'name the address that the operator gave you, and see that nothing between blocks it';
    return { checks: [{ name: 'address', verdict: 'fail', found, advice }, ...rest()] };
  } finally {
    transport?.close();
  }
}

function healthOf(body: Buffer): Health | undefined {
  try {
    const value = JSON.parse(body.toString('utf8')) as Partial<Health> | null;
    const { contract, environment, version } = value ?? {};
    return [contract, environment, version].every((member) => typeof member === 'string')
      ? (value as Health)
      : undefined;
  } catch {
    return undefined;
  }
}

async function diagnoseTls(
  { protocol, hostname, port }: URL,
  { allowPlainHttp }: ClientConfig,
  ca: Buffer | undefined,
): Promise<Diagnosed> {
  const name = 'tls';
  if (protocol === 'http:')
    return allowPlainHttp
      ? {
          name,
          verdict: 'warn',
          found: 'none, as --allow-plain-http or TAKEMARK_ALLOW_PLAIN_HTTP says',
          advice: 'the key can be read on its way: use an https address',
        }
      : { name, verdict: 'ok', found: 'none: plain http, and a key goes over it on this machine alone' };
  const host = hostname.replace(/^\[|\]$/g, '');
  const socket = connect({
    host,
    port: Number(port === '' ? 443 : port),
    // A name alone may be sent (RFC 6066, section 3).
    ...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
    ...(ca === undefined ? {} : { ca }),
  });
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(LOOK_MS) });
    const until = Date.parse(socket.getPeerCertificate().valid_to);
    const days = Math.floor((until - Date.now()) / DAY_MS);
    const found = `${socket.getProtocol() ?? 'TLS'}, certificate until ${formatTime(Math.floor(until / 1000))}`;
    return days >= CERTIFICATE_WARN_DAYS
      ? { name, verdict: 'ok', found }
      : { name, verdict: 'warn', found, advice: `${days} days are left: the operator has to renew it` };
  } catch (error) {
    return { name, verdict: 'warn', found: `a second connection failed: ${(error as Error).message}` };
  } finally {
    socket.destroy();
  }
}

function diagnoseContract({ contract, version, environment }: Health): Diagnosed {
  const found = `takemark ${version}, ${environment}, contract ${contract}`;
  return contract.startsWith(`${CONTRACT_MAJOR}.`)
    ? { name: 'service', verdict: 'ok', found }
    : {
        name: 'service',
        verdict: 'warn',
        found,
        advice: `this takemark speaks contract ${CONTRACT_MAJOR}: install the version that goes with the service`,
      };
}

/** @param date the header; it has whole seconds. @param at the moment between request and response */
function diagnoseClock(date: string | undefined, at: number): Diagnosed {
  const served = Date.parse(date ?? '');
  if (Number.isNaN(served))
    return { name: 'clock', verdict: 'not_checked', found: 'the service sends no Date' };
  const ahead = Math.round((at - served - 500) / 1000);
  const side = ahead > 0 ? 'ahead of' : 'behind';
  const found =
    Math.abs(ahead) < 2
      ? "this machine's is that of the service"
      : `this machine's is ${Math.abs(ahead)} s ${side} that of the service`;
  return Math.abs(ahead) <= CLOCK_WARN_SECONDS
    ? { name: 'clock', verdict: 'ok', found }
    : {
        name: 'clock',
        verdict: 'warn',
        found,
        advice: 'set it by NTP: signed calls are refused beyond 60 s',
      };
}

/** The key by its form alone, before it is sent. */
function diagnoseKeyForm(
  apiKey: string | undefined,
  served: string | undefined,
): Diagnosed & { readonly keyId?: string } {
  const name = 'key form';
  if (apiKey === undefined)
    return {
      name,
      verdict: 'fail',
      found: 'TAKEMARK_API_KEY is not set',
      advice: 'set it to the key that the operator gave you',
    };
  const own = readApiKey(apiKey);
  if (own === undefined)
    return {
      name,
      verdict: 'fail',
      found: 'TAKEMARK_API_KEY holds no whole key: form or checksum are wrong',
      advice: 'copy it once more, without quotes, spaces or line ends; or rotate it',
    };
  const { environment, keyId } = own;
  const found = `${keyId}, for ${environment}`;
  return served === undefined || served === environment
    ? { name, verdict: 'ok', found, keyId }
    : {
        name,
        verdict: 'fail',
        found: `${found}; the service is ${served}`,
        advice: `use a key of ${served}, or the address of ${environment}`,
      };
}

/** Sends the key: is it accepted, what may it do, and what is left of the month? */
async function diagnoseKey(context: Context, keyId: string | undefined): Promise<readonly Diagnosed[]> {
  const { config } = context;
  let client: Client | undefined;
  try {
    client = createClient({
      baseUrl: config.url,
      ...commonClientOptions(context),
      ...(await partnerAccess(config)),
      timeoutMs: LOOK_MS,
      retry: { maxAttempts: 1 },
    });
    const entry = await ownEntry(client, keyId, context.signal);
    return [...describeKey(entry), await diagnoseQuota(client, context.signal)];
  } catch (error) {
    if (context.signal.aborted) throw error;
    return [refusal(error, config.url), ...notChecked(['scopes', 'quota'])];
  } finally {
    client?.close();
  }
}

/** The key's entry among the partner's keys; undefined where the key may not list them. */
async function ownEntry(
  client: Client,
  keyId: string | undefined,
  signal: AbortSignal,
): Promise<KeyEntry | undefined> {
  try {
    for await (const entry of client.listKeys({ signal })) if (entry.keyId === keyId) return entry;
    return undefined;
  } catch (error) {
    if (isScopeMissing(error)) return undefined;
    throw error;
  }
}

function describeKey(entry: KeyEntry | undefined): Diagnosed[] {
  if (entry === undefined)
    return [
      { name: 'key', verdict: 'ok', found: 'accepted' },
      {
        name: 'scopes',
        verdict: 'not_checked',
        found: 'the key has no scope `keys`, which tells of the others',
      },
    ];
  const { status, expiresAt, scopes, signed } = entry;
  const until = expiresAt === undefined ? '' : ` until ${formatTime(expiresAt)}`;
  const found = `accepted, ${status}${until}${signed === true ? ', calls are signed' : ''}`;
  const isKept = status === 'active';
  return [
    isKept
      ? { name: 'key', verdict: 'ok', found }
      : { name: 'key', verdict: 'warn', found, advice: 'go over to the key that took its place' },
    scopes.includes('verify')
      ? { name: 'scopes', verdict: 'ok', found: scopes.join(', ') }
      : {
          name: 'scopes',
          verdict: 'warn',
          found: scopes.join(', '),
          advice: 'without `verify` no file is verified: the operator makes a key with it',
        },
  ];
}

async function diagnoseQuota(client: Client, signal: AbortSignal): Promise<Diagnosed> {
  const name = 'quota';
  try {
    const { plan, limit, remaining, period } = await client.readUsage({ days: 1, signal });
    const found = `${remaining} of ${limit} units are left (plan ${plan}) until ${formatTime(period.end)}`;
    const advice = 'ask the operator for another plan';
    if (remaining === 0) return { name, verdict: 'fail', found, advice };
    return remaining < limit / 10 ? { name, verdict: 'warn', found, advice } : { name, verdict: 'ok', found };
  } catch (error) {
    if (isScopeMissing(error)) return { name, verdict: 'not_checked', found: 'the key has no scope `usage`' };
    throw error;
  }
}

function isScopeMissing(error: unknown): boolean {
  return error instanceof TakemarkError && error.reason === 'scope_missing';
}

function refusal(error: unknown, url: string): Diagnosed {
  const found = error instanceof UsageError ? error.message : serviceErrorText(error, 'partner', url);
  return { name: 'key', verdict: 'fail', found, ...adviceOn(error) };
}

function adviceOn(error: unknown): { readonly advice?: string } {
  if (!(error instanceof TakemarkError)) return {};
  if (error.reason === 'signature_missing')
    return { advice: "its calls must be signed: TAKEMARK_API_SIGNING_KEY names the private key's file" };
  if (error.reason === 'signature_invalid')
    return {
      advice: 'the private key is not that of this API key, a proxy changes the path, or a clock is off',
    };
  if (error.status === 403)
    return { advice: 'it was revoked, has expired, or is of another installation: ask the operator' };
  return error.status === 429 ? { advice: 'too many calls: try again in a minute' } : {};
}
