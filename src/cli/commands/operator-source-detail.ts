import { defined } from '../../core/domain/defined.js';
import type { ResponseAt } from '../operator-client.js';
import { formatTime } from '../terminal.js';
import { parseTime } from '../time-option.js';
import { operatorCall } from './call-command.js';

const PARTNER_OPTION = { value: 'partnerId', required: true, help: 'partner id' } as const;
const PROOF_OPTION = { value: 'proofId', required: true, help: 'proof id' } as const;
const VERSION_OPTION = {
  value: 'version',
  required: true,
  help: 'version of the consent text that the creators agreed to, exactly as recorded',
} as const;
const PARTNER_JSON = 'print the partner as one line of JSON';

const approveSourceDetail = operatorCall({
  name: 'operator source-detail approve',
  summary: 'Approve a partner for source detail under one version of the consent text',
  details: [
    'The partner then receives the source detail of proofs whose creators agreed to exactly this version.',
  ],
  options: { partner: PARTNER_OPTION, 'consent-version': VERSION_OPTION },
  json: PARTNER_JSON,
  call:
    (_operands, { partner: partnerId, consentVersion }) =>
    async (client) =>
      approvalOf(
        await client.call('PUT partners/{partnerId}/source-detail', {
          path: { partnerId },
          json: { consentVersion },
        }),
      ),
  columns: approvalColumns,
});

const withdrawSourceDetail = operatorCall({
  name: 'operator source-detail withdraw',
  summary: "Withdraw a partner's approval for source detail",
  options: { partner: PARTNER_OPTION },
  json: PARTNER_JSON,
  call:
    (_operands, { partner: partnerId }) =>
    async (client) =>
      approvalOf(await client.call('DELETE partners/{partnerId}/source-detail', { path: { partnerId } })),
  columns: approvalColumns,
});

const grantConsent = operatorCall({
  name: 'operator consent grant',
  summary: "Record a creator's consent to the delivery of a proof's source detail",
  options: {
    proof: PROOF_OPTION,
    'consent-version': VERSION_OPTION,
    at: {
      value: 'time',
      help: 'when the creator agreed: unix seconds or 2026-01-31T12:00:00Z (now)',
    },
  },
  json: 'print the consent as one line of JSON',
  call(_operands, { proof: proofId, consentVersion, at }) {
    const grantedAt = at === undefined ? Math.floor(Date.now() / 1000) : parseTime('--at', at);
    const json = { consentVersion, grantedAt };
    return (client) => client.call('PUT proofs/{proofId}/source-detail-consent', { path: { proofId }, json });
  },
  columns: consentColumns,
});

const revokeConsent = operatorCall({
  name: 'operator consent revoke',
  summary: "Revoke a creator's consent: later reads no longer deliver source detail",
  options: { proof: PROOF_OPTION },
  json: 'print the state as one line of JSON',
  call:
    (_operands, { proof: proofId }) =>
    (client) =>
      client.call('DELETE proofs/{proofId}/source-detail-consent', { path: { proofId } }),
  columns: consentColumns,
});

export const SOURCE_DETAIL_COMMANDS = [
  approveSourceDetail,
  withdrawSourceDetail,
  grantConsent,
  revokeConsent,
];

type Approval = Pick<ResponseAt<'POST partners'>, 'partnerId' | 'sourceDetail'>;

function approvalOf({ partnerId, sourceDetail }: Approval): Approval {
  return defined({ partnerId, sourceDetail });
}

function approvalColumns({ partnerId, sourceDetail }: Approval): readonly string[] {
  const state =
    sourceDetail === undefined
      ? 'no source detail'
      : `source detail under consent ${sourceDetail.consentVersion}, since ${formatTime(sourceDetail.approvedAt)}`;
  return [partnerId, state];
}

function consentColumns(state: ResponseAt<'PUT proofs/{proofId}/source-detail-consent'>): readonly string[] {
  const { proofId, consent } = state;
  const said =
    consent === undefined
      ? 'no consent'
      : `consent ${consent.consentVersion}, granted ${formatTime(consent.grantedAt)}`;
  return [proofId, said];
}
