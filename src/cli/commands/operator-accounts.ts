import { readFile } from 'node:fs/promises';
import { defined } from '../../core/domain/defined.js';
import type { Scope } from '../../service/domain/partner.js';
import { type Context, defineCommand, EXIT, UsageError } from '../command.js';
import { findOperatorToken, OperatorClient, type Partner } from '../operator-client.js';
import { serviceAccess } from '../service-access.js';
import { formatTime, printable } from '../terminal.js';
import { keyLine, printRevoked, REVOKE_SUCCESSORS } from './partner-keys.js';

/** Help lines about the environment variables of every operator command. */
export const OPERATOR_DETAILS = [
  'Environment: TAKEMARK_OPERATOR_TOKEN is the operator token. Without it, the token is read from the',
  'file operator-token in the data directory of a service on this machine (TAKEMARK_DATA_DIR,',
  'takemark-data). TAKEMARK_OPERATOR_URL (or --operator-url) is the address. Without it, the port is read',
  'from endpoints.json in that directory; the fallback is http://127.0.0.1:8081.',
];

/** Runs `work` with a client and closes the client afterwards. */
export async function withOperator<T>(
  { config, signal }: Context,
  work: (client: OperatorClient) => Promise<T>,
): Promise<T> {
  const client = new OperatorClient({
    url: config.operatorUrl,
    token: await findOperatorToken(config),
    signal,
    ...(await serviceAccess(config, config.operatorUrl)),
  });
  try {
    return await work(client);
  } finally {
    client.close();
  }
}

/** Returns the partner's plan and, if a change is scheduled, its next plan. */
export function planText({ plan, nextPlan }: Partner): string {
  return nextPlan === undefined
    ? `plan ${plan}`
    : `plan ${plan}, ${nextPlan.plan} from ${formatTime(nextPlan.from)}`;
}

export const createPartner = defineCommand({
  name: 'operator partner create',
  service: 'operator',
  summary: 'Create a partner',
  details: OPERATOR_DETAILS,
  operands: ['<name>'],
  options: {
    plan: { value: 'plan', help: 'plan name (standard)' },
    json: { help: 'print the partner as one line of JSON' },
  },
  async run([name], options, context) {
    const { terminal } = context;
    const plan = options.plan;
    const partner = await withOperator(context, (client) => client.createPartner(defined({ name, plan })));
    if (options.json) terminal.printJson(partner);
    else terminal.print(printable(`${partner.partnerId}  ${partner.name} (${planText(partner)})`));
    return EXIT.good;
  },
});

export const listPartners = defineCommand({
  name: 'operator partner list',
  service: 'operator',
  summary: 'List the partners',
  details: OPERATOR_DETAILS,
  operands: [],
  options: { json: { help: 'print one line of JSON per partner' } },
  async run(_operands, options, context) {
    const { terminal } = context;
    for (const partner of await withOperator(context, (client) => client.listPartners())) {
      if (options.json) terminal.printJson(partner);
      else
        terminal.print(
          printable(
            `${partner.partnerId}  ${formatTime(partner.createdAt)}  ${partner.name} (${planText(partner)})`,
          ),
        );
    }
    return EXIT.good;
  },
});

export const createKey = defineCommand({
  name: 'operator key create',
  service: 'operator',
  summary: 'Create a key for a partner; its secret is shown only once',
  details: OPERATOR_DETAILS,
  operands: [],
  options: {
    partner: { value: 'partnerId', required: true, help: 'partner that gets the key' },
    name: { value: 'name', required: true, help: 'name of the key in lists' },
    scopes: {
      value: 'list',
      help: 'comma-separated subset of verify,proofs,erase,reviews,keys,usage (all)',
    },
    'public-key': {
      value: 'file',
      help: 'PEM file of an Ed25519 or P-256 public key; calls with the API key must then be signed',
    },
    json: { help: 'print keyId, apiKey and name as one line of JSON' },
  },
  async run(_operands, options, context) {
    const { terminal } = context;
    const request = {
      name: options.name,
      ...scopesOf(options.scopes),
      ...(await publicKeyOf(options.publicKey)),
    };
    const key = await withOperator(context, (client) => client.createKey(options.partner, request));
    if (options.json) {
      terminal.printJson(key);
    } else {
      // Only the secret goes to stdout, so that it can be piped into a vault.
      terminal.note(`${printable(`${key.keyId}  ${key.name}`)}. Save the secret now: it is not shown again.`);
      terminal.print(printable(key.apiKey));
    }
    return EXIT.good;
  },
});

/** @throws UsageError */
async function publicKeyOf(path: string | undefined): Promise<{ readonly publicKey?: string }> {
  if (path === undefined) return {};
  const publicKey = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`--public-key cannot be read (${path}: ${error.code ?? 'unreadable'})`);
  });
  // A private key given by mistake must not leave this machine.
  if (publicKey.includes('PRIVATE KEY'))
    throw new UsageError('--public-key names a private key; give the public key');
  return { publicKey };
}

/**
 * Splits a list of scopes without checking the names: the service knows the valid scopes.
 * @throws UsageError
 */
function scopesOf(list: string | undefined): { readonly scopes?: readonly Scope[] } {
  if (list === undefined) return {};
  const scopes = list.split(',').map((scope) => scope.trim());
  if (scopes.includes('')) throw new UsageError('--scopes has an empty entry');
  // The service refuses words that are not scopes.
  return { scopes: scopes as Scope[] };
}

export const listPartnerKeys = defineCommand({
  name: 'operator key list',
  service: 'operator',
  summary: 'List the keys of a partner, without their secrets',
  details: OPERATOR_DETAILS,
  operands: [],
  options: {
    partner: { value: 'partnerId', required: true, help: 'partner that owns the keys' },
    json: { help: 'print one line of JSON per key' },
  },
  async run(_operands, options, context) {
    const { terminal } = context;
    for (const key of await withOperator(context, (client) => client.listPartnerKeys(options.partner))) {
      if (options.json) terminal.printJson(key);
      else terminal.print(keyLine(key));
    }
    return EXIT.good;
  },
});

export const revokeKey = defineCommand({
  name: 'operator key revoke',
  service: 'operator',
  summary: 'Revoke a key, immediately and permanently',
  details: OPERATOR_DETAILS,
  operands: ['<keyId>'],
  options: {
    partner: { value: 'partnerId', required: true, help: 'partner that owns the key' },
    successors: REVOKE_SUCCESSORS,
    json: { help: 'print the key as one line of JSON' },
  },
  async run([keyId], options, context) {
    const { terminal } = context;
    const key = await withOperator(context, (client) =>
      client.revokeKey(options.partner, keyId, options.successors === true),
    );
    if (options.json) terminal.printJson(key);
    else printRevoked(terminal, key);
    return EXIT.good;
  },
});

export const authority = defineCommand({
  name: 'operator authority',
  service: 'operator',
  summary: "Print the service's certificate authorities as PEM, the current one first",
  details: OPERATOR_DETAILS,
  operands: [],
  options: {},
  async run(_operands, _options, context) {
    const pem = await withOperator(context, (client) => client.authority());
    context.terminal.printRaw(pem.endsWith('\n') ? pem : `${pem}\n`);
    return EXIT.good;
  },
});
