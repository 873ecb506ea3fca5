import { defineCommand, EXIT } from '../command.js';
import type { ResponseAt } from '../operator-client.js';
import { formatTime } from '../terminal.js';
import { parseTime } from '../time-option.js';
import { operatorCall, withOperator } from './call-command.js';

const REASONS = ['unspecified', 'key_compromise', 'superseded', 'cessation_of_operation'] as const;
const KID_OPTION = {
  value: 'kid',
  required: true,
  help: 'certificate id: 64 hex digits, as shown by operator signing list',
} as const;
const JSON_HELP = 'print the certificate as one line of JSON';

const authority = defineCommand({
  name: 'operator authority',
  service: 'operator',
  summary: "Print the service's certificate authorities as PEM, the current one first",
  async run(_operands, _options, context) {
    const pem = await withOperator(context, (client) => client.authority());
    context.terminal.printRaw(pem.endsWith('\n') ? pem : `${pem}\n`);
    return EXIT.good;
  },
});

const listSigners = operatorCall({
  name: 'operator signing list',
  summary: 'List the certificates that this service accepts, and show which one signs',
  json: 'print one line of JSON per certificate',
  call: () => (client) => client.list('GET signers', 'signers'),
  columns: columnsOf,
});

const revokeSigner = operatorCall({
  name: 'operator signing revoke',
  summary: 'Revoke a signing certificate from a given time on',
  details: [
    'Proofs registered before --from stay valid. Later proofs of this certificate get the verdict',
    'unregistered with the reason signer_revoked. The service issues nothing with a revoked certificate.',
    'All processes of a cluster apply the revocation within a second.',
  ],
  options: {
    kid: KID_OPTION,
    from: {
      value: 'time',
      required: true,
      help: 'when the key may have been lost: unix seconds or 2026-01-31T12:00:00Z',
    },
    reason: { value: 'reason', required: true, choices: REASONS, help: 'reason for the revocation' },
  },
  json: JSON_HELP,
  call(_operands, { kid, from, reason }) {
    const json = { from: parseTime('--from', from), reason };
    return (client) => client.call('POST signers/{kid}/revoke', { path: { kid }, json });
  },
  columns: columnsOf,
});

const reinstateSigner = operatorCall({
  name: 'operator signing reinstate',
  summary: 'Undo the revocation of a signing certificate; the audit log `signers` records both actions',
  options: { kid: KID_OPTION },
  json: JSON_HELP,
  call:
    (_operands, { kid }) =>
    (client) =>
      client.call('POST signers/{kid}/reinstate', { path: { kid } }),
  columns: columnsOf,
});

export const SIGNING_COMMANDS = [authority, listSigners, revokeSigner, reinstateSigner];

function columnsOf(signer: ResponseAt<'POST signers/{kid}/revoke'>): readonly string[] {
  const { kid, algorithm, issuer, notAfter, signs, revocation } = signer;
  const state =
    revocation === undefined
      ? signs
        ? 'signs'
        : 'verifies'
      : `revoked from ${formatTime(revocation.from)}, ${revocation.reason}`;
  return [kid, algorithm, issuer, `until ${formatTime(notAfter)}`, state];
}
