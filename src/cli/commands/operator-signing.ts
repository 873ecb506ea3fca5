import { defineCommand, EXIT } from '../command.js';
import type { SignerEntry } from '../operator-client.js';
import { formatTime, printable, type Terminal } from '../terminal.js';
import { parseTime } from '../time-option.js';
import { OPERATOR_DETAILS, withOperator } from './operator-accounts.js';

const REASONS = ['unspecified', 'key_compromise', 'superseded', 'cessation_of_operation'] as const;
const KID_OPTION = {
  value: 'kid',
  required: true,
  help: 'the certificate: 64 hex digits, as operator signing list shows them',
} as const;
const JSON_OPTION = { help: 'the certificate as one line of JSON' } as const;

export const listSigners = defineCommand({
  name: 'operator signing list',
  service: 'operator',
  summary: 'List the certificates that verify here, and which of them signs',
  details: OPERATOR_DETAILS,
  operands: [],
  options: { json: { help: 'one line of JSON for each certificate' } },
  async run(_operands, options, context) {
    for (const entry of await withOperator(context, (client) => client.listSigners()))
      show(entry, options.json, context.terminal);
    return EXIT.good;
  },
});

export const revokeSigner = defineCommand({
  name: 'operator signing revoke',
  service: 'operator',
  summary: 'Revoke a signing certificate from a time on',
  details: [
    'Proofs that were registered before --from stay valid; of the others verify says unregistered,',
    'signer_revoked. Nothing is issued with a revoked certificate. All processes of a cluster know of',
    'it within a second.',
    '',
    ...OPERATOR_DETAILS,
  ],
  operands: [],
  options: {
    kid: KID_OPTION,
    from: {
      value: 'time',
      required: true,
      help: 'when its key may have been lost: unix seconds, or as 2026-01-31T12:00:00Z',
    },
    reason: { value: 'reason', required: true, choices: REASONS, help: 'why' },
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
  summary: 'Take the revocation of a signing certificate back; both stay in the log of signers',
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
