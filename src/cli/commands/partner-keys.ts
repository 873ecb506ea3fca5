import { defineCommand, EXIT } from '../command.js';
import { rotationFile } from '../rotation-file.js';
import { formatTime, printable, type Terminal } from '../terminal.js';
import { PARTNER_DETAILS, withPartner } from './partner-account.js';

export const listKeys = defineCommand({
  name: 'keys list',
  service: 'partner',
  summary: 'List your keys, without their secrets',
  details: PARTNER_DETAILS,
  operands: [],
  options: { json: { help: 'print one line of JSON per key' } },
  async run(_operands, options, context) {
    const { terminal, signal } = context;
    await withPartner(context, async (client) => {
      for await (const key of client.listKeys({ signal })) {
        if (options.json) terminal.printJson(key);
        else terminal.print(keyLine(key));
      }
    });
    return EXIT.good;
  },
});

/** Returns a key as one line, for partners and the operator. */
export function keyLine(key: {
  readonly keyId: string;
  readonly name: string;
  readonly status: string;
  readonly plan: string;
  readonly expiresAt?: number;
  readonly lastUsedAt?: number;
}): string {
  const until = key.expiresAt === undefined ? '' : `  until ${formatTime(key.expiresAt)}`;
  const used = key.lastUsedAt === undefined ? '' : `  last used ${formatTime(key.lastUsedAt)}`;
  return printable(`${key.keyId}  ${key.status.padEnd(8)}  ${key.name} (plan ${key.plan})${until}${used}`);
}

export const rotateKey = defineCommand({
  name: 'keys rotate',
  service: 'partner',
  summary: 'Replace the current key by a new one; the old key works for another 72 hours',
  details: [
    'The command saves the rotation to --state before it calls the service, and adds the new secret',
    'afterwards. Only you can read that file. After any interruption, run the command again with the',
    'same key and the same file: you always get the same single new key. Then set TAKEMARK_API_KEY to',
    'the new secret and move the file to your secret store.',
    '',
    ...PARTNER_DETAILS,
  ],
  operands: [],
  options: {
    state: { value: 'file', required: true, help: 'file that holds the rotation and the new secret' },
    json: { help: 'print apiKey, keyId, name and previousKeyExpiresAt as one line of JSON' },
  },
  async run(_operands, options, context) {
    const { terminal, signal } = context;
    const store = rotationFile(options.state);
    const rotated = await withPartner(context, (client) => client.rotateKey({ store, signal }));
    if (options.json) {
      terminal.printJson(rotated);
    } else {
      // Only the secret goes to stdout, so that it can be piped into a vault.
      terminal.note(
        printable(
          `${rotated.keyId}  ${rotated.name}. The old key works until ${formatTime(rotated.previousKeyExpiresAt)}.`,
        ),
      );
      terminal.print(rotated.apiKey);
    }
    return EXIT.good;
  },
});

export const REVOKE_SUCCESSORS = { help: 'revoke every key that replaced this key as well' };

/** Prints a revoked key, and the ids of the successors that were revoked with it. */
export function printRevoked(
  terminal: Pick<Terminal, 'print'>,
  key: Parameters<typeof keyLine>[0] & { readonly revokedSuccessors?: readonly string[] },
): void {
  terminal.print(keyLine(key));
  for (const keyId of key.revokedSuccessors ?? []) terminal.print(printable(`${keyId}  revoked`));
}

export const revokeKey = defineCommand({
  name: 'keys revoke',
  service: 'partner',
  summary: 'Revoke one of your keys, immediately and permanently',
  details: [
    'A rotated key may revoke only itself. The last active key cannot be revoked: rotate it first.',
    'With --successors, every key that replaced the key by rotation is revoked as well.',
    '',
    ...PARTNER_DETAILS,
  ],
  operands: ['<keyId>'],
  options: { successors: REVOKE_SUCCESSORS, json: { help: 'print the key as one line of JSON' } },
  async run([keyId], options, context) {
    const { terminal, signal } = context;
    const { successors } = options;
    const key = await withPartner(context, (client) => client.revokeKey(keyId, { successors, signal }));
    if (options.json) terminal.printJson(key);
    else printRevoked(terminal, key);
    return EXIT.good;
  },
});
