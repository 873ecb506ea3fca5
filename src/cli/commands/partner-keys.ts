import { defineCommand, EXIT } from '../command.js';
import { rotationFile } from '../rotation-file.js';
import { formatTime, printable } from '../terminal.js';
import { PARTNER_DETAILS, withPartner } from './partner-account.js';

export const listKeys = defineCommand({
  name: 'keys list',
  service: 'partner',
  summary: 'List your keys; never their secrets',
  details: PARTNER_DETAILS,
  operands: [],
  options: { json: { help: 'one line of JSON for each key' } },
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

/** A key in one line, for partners and the operator. */
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
  summary: 'Replace the key in use by a new one; the old one works for 72 hours more',
  details: [
    'The rotation is remembered in --state before the service is asked, and the new secret is',
    'kept there too, readable by you alone. Whatever interrupts it, run it again with the same',
    'key and the same file: it ends in the same one new key. Then set TAKEMARK_API_KEY to the',
    'secret, and move the file to where your secrets are kept.',
    '',
    ...PARTNER_DETAILS,
  ],
  operands: [],
  options: {
    state: { value: 'file', required: true, help: 'where the rotation and the new secret are kept' },
    json: { help: 'apiKey, keyId, name and previousKeyExpiresAt as one line of JSON' },
  },
  async run(_operands, options, context) {
    const { terminal, signal } = context;
    const store = rotationFile(options.state);
    const rotated = await withPartner(context, (client) => client.rotateKey({ store, signal }));
    if (options.json) {
      terminal.printJson(rotated);
    } else {
      // The secret alone on stdout, so that it can be piped into a vault.
      terminal.note(
        printable(
          `${rotated.keyId}  ${rotated.name}. The key in use until now works until ${formatTime(rotated.previousKeyExpiresAt)}.`,
        ),
      );
      terminal.print(rotated.apiKey);
    }
    return EXIT.good;
  },
});

export const revokeKey = defineCommand({
  name: 'keys revoke',
  service: 'partner',
  summary: 'Revoke a key of your own, at once and for good',
  details: [
    'A key that was rotated may revoke itself alone; the last active key is rotated first.',
    '',
    ...PARTNER_DETAILS,
  ],
  operands: ['<keyId>'],
  options: { json: { help: 'the key as one line of JSON' } },
  async run([keyId], options, context) {
    const { terminal, signal } = context;
    const key = await withPartner(context, (client) => client.revokeKey(keyId, { signal }));
    if (options.json) terminal.printJson(key);
    else terminal.print(keyLine(key));
    return EXIT.good;
  },
});
