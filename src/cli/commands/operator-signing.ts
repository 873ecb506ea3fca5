import { defineCommand, EXIT } from '../command.js';
import type { SignerEntry } from '../operator-client.js';
import { formatTime, printable, type Terminal } from '../terminal.js';
import { parseTime } from '../time-option.js';
import { OPERATOR_DETAILS, withOperator } from './operator-accounts.js';

const REASONS = ['unspecified', 'key_compromise', 'superseded', 'cessation_of_operation'] as const;
const KID_OPTION = {
  value: 'kid',
  required: true,
  help: 'certificate id: 64 hex digits, as shown by operator signing list',
} as const;
const JSON_OPTION = { help: 'print the certificate as one line of JSON' } as const;

export const listSigners = defineCommand({
  name: 'operator signing list',
  service: 'operator',
  summary: 'List the certificates that this service accepts, and show which one signs',
  details: OPERATOR_DETAILS,
  operands: [],
  options: { json: { help: 'print one line of JSON per certificate' } },
  async run(_operands, options, context) {
    for (const entry of await withOperator(context, (client) => client.listSigners()))
      show(entry, options.json, context.terminal);
    return EXIT.good;
  },
});

export const revokeSigner = defineCommand({
  name: 'operator signing revoke',
  service: 'operator',
  summary: 'Revoke a signing certificate from a given time on',
  details: [
    'Proofs registered before --from stay valid. Later proofs of this certificate get the verdict',
    'unregistered with the reason signer_revoked. The service issues nothing with a revoked certificate.',
    'All processes of a cluster apply the revocation within a second.',
    '',
    ...OPERATOR_DETAILS,
  ],
  operands: [],
  options: {
    kid: KID_OPTION,
    from: {
      value: 'time',
      required: true,
      help: 'when the key may have been lost: unix seconds or 2026-01-31T12:00:00Z',
    },
    reason: { value: 'reason', required: true, choices: REASONS, help: 'reason for the revocation' },
    json: JSON_OPTION,
  },
  async run(_operands, options, context) {
    const call = { from: parseTime('--from', options.from), reason: options.reason };
    show(
      await withOperator(context, (client) => client.revokeSigner(options.kid, call)),
      options.json,
      context.terminal,
    );
    return EXIT.good;
  },
});

export const reinstateSigner = defineCommand({
  name: 'operator signing reinstate',
  service: 'operator',
  summary: 'Undo the revocation of a signing certificate; the audit log `signers` records both actions',
  details: OPERATOR_DETAILS,
  operands: [],
  options: { kid: KID_OPTION, json: JSON_OPTION },
  async run(_operands, options, context) {
    show(
      await withOperator(context, (client) => client.reinstateSigner(options.kid)),
      options.json,
      context.terminal,
    );
    return EXIT.good;
  },
});

function show(entry: SignerEntry, json: boolean, terminal: Terminal): void {
  if (json) return terminal.printJson(entry);
  const { kid, algorithm, issuer, notAfter, signs, revocation } = entry;
  const state =
    revocation === undefined
      ? signs
        ? 'signs'
        : 'verifies'
      : `revoked from ${formatTime(revocation.from)}, ${revocation.reason}`;
  terminal.print(printable(`${kid}  ${algorithm}  ${issuer}  until ${formatTime(notAfter)}  ${state}`));
}
