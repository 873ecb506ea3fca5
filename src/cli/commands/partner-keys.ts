import { rotationFile } from '../rotation-file.js';
import { formatTime, printable, type Terminal } from '../terminal.js';
import { lineOf, partnerCall } from './call-command.js';

interface Key {
  readonly keyId: string;
  readonly name: string;
  readonly status: string;
  readonly plan: string;
  readonly expiresAt?: number;
  readonly lastUsedAt?: number;
  readonly revokedSuccessors?: readonly string[];
}

const listKeys = partnerCall({
  name: 'keys list',
  summary: 'List your keys, without their secrets',
  json: 'print one line of JSON per key',
  call:
    (_operands, _options, { signal }) =>
    (client) =>
      client.listKeys({ signal }),
  columns: keyColumns,
});

/** Returns the columns of a key, for partners and the operator. */
export function keyColumns(key: Key): readonly (string | undefined)[] {
  return [
    key.keyId,
    key.status.padEnd(8),
    `${key.name} (plan ${key.plan})`,
    key.expiresAt === undefined ? undefined : `until ${formatTime(key.expiresAt)}`,
    key.lastUsedAt === undefined ? undefined : `last used ${formatTime(key.lastUsedAt)}`,
  ];
}

const rotateKey = partnerCall({
  name: 'keys rotate',
  summary: 'Replace the current key by a new one; the old key works for another 72 hours',
  details: [
    'The command saves the rotation to --state before it calls the service, and adds the new secret',
    'afterwards. Only you can read that file. After any interruption, run the command again with the',
    'same key and the same file: you always get the same single new key. Then set TAKEMARK_API_KEY to',
    'the new secret and move the file to your secret store.',
  ],
  options: {
    state: { value: 'file', required: true, help: 'file that holds the rotation and the new secret' },
  },
  json: 'print apiKey, keyId, name and previousKeyExpiresAt as one line of JSON',
  call(_operands, { state }, { signal }) {
    const store = rotationFile(state);
    return (client) => client.rotateKey({ store, signal });
  },
  print([rotated], terminal) {
    const { keyId, name, previousKeyExpiresAt, apiKey } = rotated!;
    // Only the secret goes to stdout, so that it can be piped into a vault.
    terminal.note(
      printable(`${keyId}  ${name}. The old key works until ${formatTime(previousKeyExpiresAt)}.`),
    );
    terminal.print(apiKey);
  },
});

export const REVOKE_SUCCESSORS = { help: 'revoke every key that replaced this key as well' };

/** Prints a revoked key, and the ids of the successors that were revoked with it. */
export function printRevoked([key]: readonly Key[], terminal: Terminal): void {
  terminal.print(lineOf(keyColumns(key!)));
  for (const keyId of key!.revokedSuccessors ?? []) terminal.print(lineOf([keyId, 'revoked']));
}

const revokeKey = partnerCall({
  name: 'keys revoke',
  summary: 'Revoke one of your keys, immediately and permanently',
  details: [
    'A rotated key may revoke only itself. The last active key cannot be revoked: rotate it first.',
    'With --successors, every key that replaced the key by rotation is revoked as well.',
  ],
  operands: ['<keyId>'],
  options: { successors: REVOKE_SUCCESSORS },
  json: 'print the key as one line of JSON',
  call:
    ([keyId], { successors }, { signal }) =>
    (client) =>
      client.revokeKey(keyId, { successors, signal }),
  print: printRevoked,
});

export const KEY_COMMANDS = [listKeys, rotateKey, revokeKey];
