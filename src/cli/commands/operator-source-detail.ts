import { defined } from '../../core/domain/defined.js';
import { defineCommand, EXIT } from '../command.js';
import type { ConsentState, Partner } from '../operator-client.js';
import { formatTime, printable, type Terminal } from '../terminal.js';
import { parseTime } from '../time-option.js';
import { OPERATOR_DETAILS, withOperator } from './operator-accounts.js';

const PARTNER_OPTION = { value: 'partnerId', required: true, help: 'partner id' } as const;
const PROOF_OPTION = { value: 'proofId', required: true, help: 'proof id' } as const;
const VERSION_OPTION = {
  value: 'version',
  required: true,
  help: 'version of the consent text that the creators agreed to, exactly as recorded',
} as const;

export const approveSourceDetail = defineCommand({
  name: 'operator source-detail approve',
  service: 'operator',
  summary: 'Approve a partner for source detail under one version of the consent text',
  details: [
    'The partner then receives the source detail of proofs whose creators agreed to exactly this version.',
    '',
    ...OPERATOR_DETAILS,
  ],
  operands: [],
  options: {
    partner: PARTNER_OPTION,
    'consent-version': VERSION_OPTION,
    json: { help: 'print the partner as one line of JSON' },
  },
  async run(_operands, options, context) {
    const partner = await withOperator(context, (client) =>
      client.approveSourceDetail(options.partner, options.consentVersion),
    );
    showPartner(partner, options.json, context.terminal);
    return EXIT.good;
  },
});

export const withdrawSourceDetail = defineCommand({
  name: 'operator source-detail withdraw',
  service: 'operator',
  summary: "Withdraw a partner's approval for source detail",
  details: OPERATOR_DETAILS,
  operands: [],
  options: { partner: PARTNER_OPTION, json: { help: 'print the partner as one line of JSON' } },
  async run(_operands, options, context) {
    const partner = await withOperator(context, (client) => client.withdrawSourceDetail(options.partner));
    showPartner(partner, options.json, context.terminal);
    return EXIT.good;
  },
});

export const grantConsent = defineCommand({
  name: 'operator consent grant',
  service: 'operator',
  summary: "Record a creator's consent to the delivery of a proof's source detail",
  details: OPERATOR_DETAILS,
  operands: [],
  options: {
    proof: PROOF_OPTION,
    'consent-version': VERSION_OPTION,
    at: {
      value: 'time',
      help: 'when the creator agreed: unix seconds or 2026-01-31T12:00:00Z (now)',
    },
    json: { help: 'print the consent as one line of JSON' },
  },
  async run(_operands, options, context) {
    const grantedAt =
      options.at === undefined ? Math.floor(Date.now() / 1000) : parseTime('--at', options.at);
    const consent = { consentVersion: options.consentVersion, grantedAt };
    showConsent(
      await withOperator(context, (client) => client.grantConsent(options.proof, consent)),
      options.json,
      context.terminal,
    );
    return EXIT.good;
  },
});

export const revokeConsent = defineCommand({
  name: 'operator consent revoke',
  service: 'operator',
  summary: "Revoke a creator's consent: later reads no longer deliver source detail",
  details: OPERATOR_DETAILS,
  operands: [],
  options: { proof: PROOF_OPTION, json: { help: 'print the state as one line of JSON' } },
  async run(_operands, options, context) {
    showConsent(
      await withOperator(context, (client) => client.revokeConsent(options.proof)),
      options.json,
      context.terminal,
    );
    return EXIT.good;
  },
});

function showPartner({ partnerId, sourceDetail }: Partner, json: boolean, terminal: Terminal): void {
  if (json) return terminal.printJson(defined({ partnerId, sourceDetail }));
  const state =
    sourceDetail === undefined
      ? 'no source detail'
      : `source detail under consent ${sourceDetail.consentVersion}, since ${formatTime(sourceDetail.approvedAt)}`;
  terminal.print(printable(`${partnerId}  ${state}`));
}

function showConsent(state: ConsentState, json: boolean, terminal: Terminal): void {
  if (json) return terminal.printJson(state);
  const { proofId, consent } = state;
  const said =
    consent === undefined
      ? 'no consent'
      : `consent ${consent.consentVersion}, granted ${formatTime(consent.grantedAt)}`;
  terminal.print(printable(`${proofId}  ${said}`));
}
