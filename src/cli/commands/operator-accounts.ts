import { readFile } from 'node:fs/promises';
import { defined } from '../../core/domain/defined.js';
import type { Scope } from '../../service/domain/partner.js';
import { UsageError } from '../command.js';
import type { ResponseAt } from '../operator-client.js';
import { formatTime, printable } from '../terminal.js';
import { operatorCall } from './call-command.js';
import { keyColumns, printRevoked, REVOKE_SUCCESSORS } from './partner-keys.js';

/** Returns the partner's name with its plan and, if a change is scheduled, its next plan. */
export function planText({ name, plan, nextPlan }: ResponseAt<'POST partners'>): string {
  const next = nextPlan === undefined ? '' : `, ${nextPlan.plan} from ${formatTime(nextPlan.from)}`;
  return `${name} (plan ${plan}${next})`;
}

const createPartner = operatorCall({
  name: 'operator partner create',
  summary: 'Create a partner',
  operands: ['<name>'],
  options: { plan: { value: 'plan', help: 'plan name (standard)' } },
  json: 'print the partner as one line of JSON',
  call:
    ([name], { plan }) =>
    (client) =>
      client.call('POST partners', { json: defined({ name, plan }) }),
  columns: (partner) => [partner.partnerId, planText(partner)],
});

const listPartners = operatorCall({
  name: 'operator partner list',
  summary: 'List the partners',
  json: 'print one line of JSON per partner',
  call: () => (client) => client.list('GET partners', 'partners'),
  columns: (partner) => [partner.partnerId, formatTime(partner.createdAt), planText(partner)],
});

const createKey = operatorCall({
  name: 'operator key create',
  summary: 'Create a key for a partner; its secret is shown only once',
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
  },
  json: 'print keyId, apiKey and name as one line of JSON',
  async call(_operands, { partner: partnerId, name, scopes, publicKey }) {
    const json = { name, ...scopesOf(scopes), ...(await publicKeyOf(publicKey)) };
    return (client) => client.call('POST partners/{partnerId}/keys', { path: { partnerId }, json });
  },
  print([key], terminal) {
    // Only the secret goes to stdout, so that it can be piped into a vault.
    terminal.note(`${printable(`${key!.keyId}  ${key!.name}`)}. Save the secret now: it is not shown again.`);
    terminal.print(printable(key!.apiKey));
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
  return { scopes: scopes as Scope[] };
}

const listPartnerKeys = operatorCall({
  name: 'operator key list',
  summary: 'List the keys of a partner, without their secrets',
  options: { partner: { value: 'partnerId', required: true, help: 'partner that owns the keys' } },
  json: 'print one line of JSON per key',
  call:
    (_operands, { partner: partnerId }) =>
    (client) =>
      client.list('GET partners/{partnerId}/keys', 'keys', { path: { partnerId } }),
  columns: keyColumns,
});

const revokeKey = operatorCall({
  name: 'operator key revoke',
  summary: 'Revoke a key, immediately and permanently',
  operands: ['<keyId>'],
  options: {
    partner: { value: 'partnerId', required: true, help: 'partner that owns the key' },
    successors: REVOKE_SUCCESSORS,
  },
  json: 'print the key as one line of JSON',
  call:
    ([keyId], { partner: partnerId, successors }) =>
    (client) =>
      client.call('POST partners/{partnerId}/keys/{keyId}/revoke', {
        path: { partnerId, keyId },
        query: { successors: successors ? 'true' : undefined },
      }),
  print: printRevoked,
});

export const PARTNER_COMMANDS = [createPartner, listPartners];
export const PARTNER_KEY_COMMANDS = [createKey, listPartnerKeys, revokeKey];
