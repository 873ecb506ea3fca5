/**
 * Verifies an audio file: `node verify.ts FILE` (Node 22.18 or newer; `tsc verify.ts` for 20), with
 * TAKEMARK_URL and TAKEMARK_API_KEY in the environment. Prints the service's answer in one line. Exit codes: 0
 * accepted, 1 not accepted, 2 wrong use, 3 no answer, and 4 where the credential holds and a person is to look
 * at its evidence.
 */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

const ATTEMPTS = 5;
const LONGEST_PAUSE_SECONDS = 60;

/** The members that decide. Strings, not unions: the service may add values. */
interface Result {
  readonly verdict?: string;
  readonly good?: boolean;
  readonly decision?: { readonly status?: string } | null;
}

class WrongUse extends Error {}

class Refused extends Error {
  readonly status: number;
  readonly retryAfter: string | null;

  constructor(status: number, retryAfter: string | null, body: string) {
    super(`refused with ${status}: ${body}`);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/**
 * Keys and audio travel over TLS, or do not leave this machine. The name localhost is refused: it may mean ::1, where
 * another user of this machine can listen.
 */
function protectedAddress(address: string): string {
  const { protocol, hostname } = URL.canParse(address) ? new URL(address) : { protocol: '', hostname: '' };
  const loopback = /^(127(\.\d{1,3}){3}|\[::1\])$/.test(hostname);
  if (protocol !== 'https:' && !(protocol === 'http:' && loopback))
    throw new WrongUse('plain HTTP is for loopback addresses alone');
  return address;
}

async function post(address: string, body: FormData, headers: Record<string, string>) {
  // A redirect would carry the key along.
  const response = await fetch(protectedAddress(address), {
    method: 'POST',
    body,
    headers,
    redirect: 'error',
    signal: AbortSignal.timeout(300_000),
  });
  if (!response.ok)
    throw new Refused(response.status, response.headers.get('retry-after'), await response.text());
  return response.json();
}

/** Repeats a call that was refused for now, after the pause that the service asks for. */
async function retrying<T>(call: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof Refused) || (error.status !== 429 && error.status !== 503)) throw error;
      const pause = /^\d+$/.test(error.retryAfter ?? '') ? Number(error.retryAfter) : 2 ** attempt;
      if (attempt === ATTEMPTS || pause > LONGEST_PAUSE_SECONDS) throw error;
      await sleep(pause * 1000);
    }
  }
}

async function verify(base: string, key: string, file: Blob): Promise<Result> {
  const form = new FormData();
  form.set('file', file, 'audio');
  // All attempts have the same Idempotency-Key, so the call is billed once.
  const headers = { 'x-api-key': key, 'idempotency-key': randomUUID() };
  return (await retrying(() => post(`${base}/v1/verifications`, form, headers))) as Result;
}

/** A verdict or status that is not known today is not accepted. */
function outcome({ verdict, good, decision }: Result): number {
  if (verdict !== 'valid' || good !== true) return 1;
  if (decision?.status === 'verified_binding') return 0;
  return decision?.status === 'needs_review' ? 4 : 1;
}

async function main(): Promise<number> {
  const base = (process.env['TAKEMARK_URL'] ?? '').replace(/\/+$/, '');
  const key = process.env['TAKEMARK_API_KEY'] ?? '';
  const [path, ...more] = process.argv.slice(2);
  if (base === '' || key === '' || path === undefined || more.length > 0)
    throw new WrongUse('usage: TAKEMARK_URL=... TAKEMARK_API_KEY=... node verify.ts FILE');
  // The error for a header that cannot be sent would show the key.
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new WrongUse('TAKEMARK_API_KEY must be printable ASCII without spaces or line breaks');
  protectedAddress(base);
  const audio = await readFile(path).catch((error: Error) => {
    throw new WrongUse(error.message);
  });
  const result = await verify(base, key, new Blob([audio]));
  process.stdout.write(`${JSON.stringify(result)}\n`);
  return outcome(result);
}

process.exitCode = await main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  return error instanceof WrongUse ? 2 : 3;
});
