import { readFile } from 'node:fs/promises';
import { defined } from '../../domain/defined.js';
import { type Context, defineCommand, EXIT, UsageError } from '../command.js';
import { findOperatorToken, OperatorClient, type Partner } from '../operator-client.js';
import { serviceAccess } from '../service-access.js';
import { formatTime, printable } from '../terminal.js';
import { keyLine } from './partner-keys.js';

/** Lines of every operator command's help on its environment. */
export const OPERATOR_DETAILS = [
  'TAKEMARK_OPERATOR_TOKEN holds the token; without it, the file operator-token in the data',
  'directory of a service on this machine does (TAKEMARK_DATA_DIR, takemark-data).',
  'TAKEMARK_OPERATOR_URL or --operator-url is the address; without it, the file endpoints.json of',
  'that directory has the port, else http://127.0.0.1:8081.',
];

/** Runs `work` with a client that is closed at the end. */
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

/** Plan that a partner has, and the one that it will have. */
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
    plan: { value: 'plan', help: 'name of a plan (standard)' },
    json: { help: 'the partner as one line of JSON' },
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
  options: { json: { help: 'one line of JSON for each partner' } },
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
  summary: 'Create a key for a partner; its secret is shown this once',
  details: OPERATOR_DETAILS,
  operands: [],
  options: {
    partner: { value: 'partnerId', required: true, help: 'whose key it is' },
    name: { value: 'name', required: true, help: 'what the key is called in lists' },
    scopes: { value: 'list', help: 'verify,proofs,erase,reviews,keys,usage, or some of them (all)' },
    'public-key': {
      value: 'file',
      help: 'PEM of an Ed25519 or P-256 key: calls with the key must be signed',
    },
    json: { help: 'keyId, apiKey and name as one line of JSON' },
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
      // The secret alone on stdout, so that it can be piped into a vault.
      terminal.note(
        `${printable(`${key.keyId}  ${key.name}`)}. Keep the secret now: it is never shown again.`,
      );
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
  // A secret given by mistake does not leave this machine.
  if (publicKey.includes('PRIVATE KEY')) throw new UsageError('--public-key holds a private key');
  return { publicKey };
}

/** Scopes of a list, unchecked: the service knows which there are. @throws UsageError */
function scopesOf(list: string | undefined): { readonly scopes?: readonly string[] } {
  if (list === undefined) return {};
  const scopes = list.split(',').map((scope) => scope.trim());
  if (scopes.includes('')) throw new UsageError('--scopes has an empty entry');
  return { scopes };
}

export const listPartnerKeys = defineCommand({
  name: 'operator key list',
  service: 'operator',
  summary: 'List the keys of a partner; never their secrets',
  details: OPERATOR_DETAILS,
  operands: [],
  options: {
    partner: { value: 'partnerId', required: true, help: 'whose keys' },
    json: { help: 'one line of JSON for each key' },
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
  summary: 'Revoke a key, at once and for good',
  details: OPERATOR_DETAILS,
  operands: ['<keyId>'],
  options: {
    partner: { value: 'partnerId', required: true, help: 'whose key it is' },
    json: { help: 'the key as one line of JSON' },
  },
  async run([keyId], options, context) {
    const { terminal } = context;
    const key = await withOperator(context, (client) => client.revokeKey(options.partner, keyId));
    if (options.json) terminal.printJson(key);
    else terminal.print(keyLine(key));
    return EXIT.good;
  },
});

export const authority = defineCommand({
  name: 'operator authority',
  service: 'operator',
  summary: "Print the certificates of the service's authority as PEM, the current one first",
  details: OPERATOR_DETAILS,
  operands: [],
  options: {},
  async run(_operands, _options, context) {
    const pem = await withOperator(context, (client) => client.authority());
    context.terminal.printRaw(pem.endsWith('\n') ? pem : `${pem}\n`);
    return EXIT.good;
  },
});
