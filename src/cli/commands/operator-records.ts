import { defineCommand, EXIT } from '../command.js';
import type { AuditVerification } from '../operator-client.js';
import { formatTime, printable } from '../terminal.js';
import { OPERATOR_DETAILS, withOperator } from './operator-accounts.js';

export const erasureStatus = defineCommand({
  name: 'operator erasure status',
  service: 'operator',
  summary: 'Show what is left of a proof',
  details: [
    'The exit code is 1 where a proof that was erased still has a deliverable.',
    '',
    ...OPERATOR_DETAILS,
  ],
  operands: ['<proofId>'],
  options: { json: { help: 'the state as one line of JSON' } },
  async run([proofId], options, context) {
    const { terminal } = context;
    const status = await withOperator(context, (client) => client.erasureStatus(proofId));
    const { state, erasedAt, confirmedAt, assetPresent } = status;
    if (options.json) terminal.printJson(status);
    else
      terminal.print(
        printable(
          `${proofId}  ${state}${erasedAt === undefined ? '' : ` ${formatTime(erasedAt)}`}, deliverable ${assetPresent ? 'present' : 'gone'}${confirmedAt === undefined ? '' : `, confirmed ${formatTime(confirmedAt)}`}`,
        ),
      );
    return state === 'erased' && assetPresent ? EXIT.notGood : EXIT.good;
  },
});

/** Logs of the service's own, read under these names. */
const SERVICE_LOGS = ['signers', 'devices', 'plans'];
const SEQUENCES = [1, 999_999_999_999] as const;

export const readAudit = defineCommand({
  name: 'operator audit read',
  service: 'operator',
  summary: "Print entries of a partner's audit log, oldest first",
  details: OPERATOR_DETAILS,
  operands: ['<partnerId>'],
  options: {
    from: { value: 'sequence', range: SEQUENCES, help: 'the first entry (1)' },
    limit: { value: 'n', range: [1, 1000], help: 'entries at most, 1 to 1000 (100)' },
    json: { help: 'one line of JSON for each entry' },
  },
  async run([partnerId], options, context) {
    const { terminal } = context;
    const { from = 1, limit = 100 } = options;
    for (const entry of await withOperator(context, (client) =>
      client.readAudit(partnerId, { from, limit }),
    )) {
      if (options.json) terminal.printJson(entry);
      else
        terminal.print(
          printable(
            `${String(entry.sequence).padStart(6)}  ${formatTime(entry.at)}  ${entry.action.padEnd(24)}  ${entry.actor}  ${entry.subjects.join(' ')}`,
          ).trimEnd(),
        );
    }
    return EXIT.good;
  },
});

/** Findings after which the command ends: they may be as many as there are proofs. */
const MOST_FINDINGS = 1000;

export const auditStores = defineCommand({
  name: 'operator audit stores',
  service: 'operator',
  summary: 'Hold records, deliverables, events and usage against each other',
  details: [
    'Every erasure older than ten minutes has its event and confirmation, every proof its files and every',
    'file its proof, every review its announcements, and the quota of each month is what was added up and',
    'what waits. Every finding was seen twice; nothing is changed. The service does the same in the',
    `background, slowly. Ends after ${MOST_FINDINGS} findings, and says where to go on with --from.`,
    'The exit code is 0 without a finding, and 1 with one.',
    '',
    ...OPERATOR_DETAILS,
  ],
  operands: [],
  options: {
    from: { value: 'place', help: 'where an earlier run ended' },
    json: { help: 'one line of JSON for each step of the pass' },
  },
  async run(_operands, options, context) {
    const { terminal } = context;
    let found = 0;
    let looked = 0;
    await withOperator(context, async (client) => {
      let place = options.from;
      do {
        const step = await client.auditStores(place);
        found += step.findings.length;
        looked += step.looked;
        if (options.json) terminal.printJson(step);
        else
          for (const { kind, subject, detail } of step.findings)
            terminal.print(printable(`${kind.padEnd(18)}  ${subject}  ${detail}`));
        place = step.next;
      } while (place !== undefined && found < MOST_FINDINGS);
      if (options.json) return;
      terminal.print(`${looked} looked at, ${found} ${found === 1 ? 'finding' : 'findings'}`);
      if (place !== undefined) terminal.print(printable(`go on with --from ${place}`));
    });
    return found === 0 ? EXIT.good : EXIT.notGood;
  },
});

export const verifyAudit = defineCommand({
  name: 'operator audit verify',
  service: 'operator',
  summary: 'Check whole audit logs for edits, deletions, reordering and truncation',
  details: [
    'All partners, and the logs of signers, devices and plans, are checked where none is named.',
    'The exit code is 0 where every log is sound, and 1 where one is not.',
    '',
    ...OPERATOR_DETAILS,
  ],
  operands: ['[partnerId]'],
  options: { json: { help: 'one line of JSON for each log' } },
  async run([named], options, context) {
    const { terminal } = context;
    const results = await withOperator(context, async (client) => {
      const partnerIds =
        named === undefined
          ? [...(await client.listPartners()).map(({ partnerId }) => partnerId), ...SERVICE_LOGS]
          : [named];
      const checked: { partnerId: string; result: AuditVerification }[] = [];
      for (const partnerId of partnerIds)
        checked.push({ partnerId, result: await client.verifyAudit(partnerId) });
      return checked;
    });
    for (const { partnerId, result } of results) {
      const { ok, entries, fault } = result;
      const whose = printable(partnerId);
      if (options.json) terminal.printJson({ partnerId, ...result });
      else if (ok === true)
        terminal.print(`${terminal.style('✔ SOUND', 'bold', 'green')}  ${whose}  ${entries} entries`);
      else
        terminal.print(
          `${terminal.style('✘ NOT SOUND', 'bold', 'red')}  ${whose}  ${printable(fault === undefined ? 'no fault named' : `${fault.reason} at entry ${fault.sequence}`)}`,
        );
    }
    return results.every(({ result }) => result.ok === true) ? EXIT.good : EXIT.notGood;
  },
});
