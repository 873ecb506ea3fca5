import { once } from 'node:events';
import { connect } from 'node:tls';
import { parseBase } from '../client/connection.js';
import { TakemarkError } from '../client/errors.js';
import { type Client, createClient } from '../client/index.js';
import { Transport } from '../client/transport.js';
import type { Health, KeyEntry } from '../client/types.js';
import { CONTRACT_MAJOR } from '../client/version.js';
import { readApiKey } from '../service/domain/partner-key.js';
import { runtimeWarning, runtimeWords } from '../service/domain/runtime-support.js';
import { type ClientConfig, type Context, UsageError } from './command.js';
import { commonClientOptions, partnerAccess } from './commands/partner-account.js';
import { serviceAccess } from './service-access.js';
import { serviceErrorText } from './service-errors.js';
import { formatTime } from './terminal.js';

/** One finding. `fail` prevents verification now, `warn` will or may prevent it later. */
export interface Diagnosed {
  readonly name: string;
  readonly verdict: 'ok' | 'warn' | 'fail' | 'not_checked';
  readonly found: string;
  /** The action to take. Absent if no action is needed. */
  readonly advice?: string;
}

const LOOK_MS = 10_000;
/** The clock error to warn above, in seconds. Signed calls fail above 60 seconds (RFC 9421, section 2.3). */
const CLOCK_WARN_SECONDS = 30;
const CERTIFICATE_WARN_DAYS = 14;
const DAY_MS = 86_400_000;

/**
 * Checks everything that a verification needs: Node, address, TLS, service, clock, key, scopes, quota. It
 * only reads and is not billed. A check that an earlier failure makes impossible is `not_checked`.
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
  return names.map((name) => ({ name, verdict: 'not_checked', found: 'fix the failure above first' }));
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

/** Reads the service's health without sending the key. */
async function lookAtService(
  context: Context,
): Promise<{ readonly checks: readonly Diagnosed[]; readonly health?: Health }> {
  const { config, version, signal } = context;
  const rest = () => notChecked(['tls', 'service', 'clock']);
  let transport: Transport | undefined;
  try {
    // No secret is sent, so plain HTTP exposes none.
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
            found: `${config.url} answers, but it is not a Takemark service`,
            advice: 'ask the operator for the address, and set it with --url or TAKEMARK_URL',
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
    const advice = 'check that the address is the one from the operator, and that no firewall blocks it';
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
          found: 'no TLS: --allow-plain-http or TAKEMARK_ALLOW_PLAIN_HTTP allows plain http',
          advice: 'the network can read the key: use an https address',
        }
      : { name, verdict: 'ok', found: 'no TLS: plain http, and the key is sent only within this machine' };
  const host = hostname.replace(/^\[|\]$/g, '');
  const socket = connect({
    host,
    port: Number(port === '' ? 443 : port),
    // Only a host name may be sent, never an IP address (RFC 6066, section 3).
    ...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
    ...(ca === undefined ? {} : { ca }),
  });
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(LOOK_MS) });
    const until = Date.parse(socket.getPeerCertificate().valid_to);
    const days = Math.floor((until - Date.now()) / DAY_MS);
    const found = `${socket.getProtocol() ?? 'TLS'}, certificate valid until ${formatTime(Math.floor(until / 1000))}`;
    return days >= CERTIFICATE_WARN_DAYS
      ? { name, verdict: 'ok', found }
      : {
          name,
          verdict: 'warn',
          found,
          advice: `${days} days left: the operator must renew the certificate`,
        };
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
        advice: `this takemark supports contract ${CONTRACT_MAJOR}: install a version that supports the service`,
      };
}

/**
 * @param date the Date header, in whole seconds.
 * @param at the midpoint between request and response, in ms
 */
function diagnoseClock(date: string | undefined, at: number): Diagnosed {
  const served = Date.parse(date ?? '');
  if (Number.isNaN(served))
    return { name: 'clock', verdict: 'not_checked', found: 'the service sends no Date header' };
  const ahead = Math.round((at - served - 500) / 1000);
  const side = ahead > 0 ? 'ahead of' : 'behind';
  const found =
    Math.abs(ahead) < 2
      ? 'this machine agrees with the service'
      : `this machine is ${Math.abs(ahead)} s ${side} the service`;
  return Math.abs(ahead) <= CLOCK_WARN_SECONDS
    ? { name: 'clock', verdict: 'ok', found }
    : {
        name: 'clock',
        verdict: 'warn',
        found,
        advice: 'synchronise the clock with NTP: signed calls fail above 60 s',
      };
}

/** Checks the form of the key without sending it. */
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
      advice: 'set it to the API key that you got from the operator',
    };
  const own = readApiKey(apiKey);
  if (own === undefined)
    return {
      name,
      verdict: 'fail',
      found: 'TAKEMARK_API_KEY is not a complete key: its form or checksum is wrong',
      advice: 'copy it again, without quotes, spaces or line breaks',
    };
  const { environment, keyId } = own;
  const found = `${keyId}, for ${environment}`;
  return served === undefined || served === environment
    ? { name, verdict: 'ok', found, keyId }
    : {
        name,
        verdict: 'fail',
        found: `${found}; the service runs ${served}`,
        advice: `use a key for ${served}, or the address of the ${environment} service`,
      };
}

/** Sends the key to check whether it is accepted, its scopes and the remaining quota. */
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

/** Returns the key's entry in the list of keys, or undefined if the key may not list keys. */
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
        found: 'the key lacks the scope `keys`, which is needed to list scopes',
      },
    ];
  const { status, expiresAt, scopes, signed } = entry;
  const until = expiresAt === undefined ? '' : ` until ${formatTime(expiresAt)}`;
  const found = `accepted, ${status}${until}${signed === true ? ', calls are signed' : ''}`;
  const isKept = status === 'active';
  return [
    isKept
      ? { name: 'key', verdict: 'ok', found }
      : { name: 'key', verdict: 'warn', found, advice: 'switch to the key that replaced it' },
    scopes.includes('verify')
      ? { name: 'scopes', verdict: 'ok', found: scopes.join(', ') }
      : {
          name: 'scopes',
          verdict: 'warn',
          found: scopes.join(', '),
          advice: 'verification needs the scope `verify`: ask the operator for a key with it',
        },
  ];
}

async function diagnoseQuota(client: Client, signal: AbortSignal): Promise<Diagnosed> {
  const name = 'quota';
  try {
    const { plan, limit, remaining, period } = await client.readUsage({ days: 1, signal });
    const found = `${remaining} of ${limit} units left (plan ${plan}) until ${formatTime(period.end)}`;
    const advice = 'ask the operator for a larger plan';
    if (remaining === 0) return { name, verdict: 'fail', found, advice };
    return remaining < limit / 10 ? { name, verdict: 'warn', found, advice } : { name, verdict: 'ok', found };
  } catch (error) {
    if (isScopeMissing(error))
      return { name, verdict: 'not_checked', found: 'the key lacks the scope `usage`' };
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
    return { advice: 'calls must be signed: set TAKEMARK_API_SIGNING_KEY to the file of the private key' };
  if (error.reason === 'signature_invalid')
    return {
      advice:
        'the private key does not belong to this API key, a proxy changes the path, or a clock is wrong',
    };
  if (error.status === 403)
    return { advice: 'the key is revoked or expired, or belongs to another installation: ask the operator' };
  return error.status === 429 ? { advice: 'too many calls: try again in a minute' } : {};
}
