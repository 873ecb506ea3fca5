import { readFile, stat } from 'node:fs/promises';
import { replaceFile } from '../../core/files/durable.js';
import { ifPresent } from '../../core/files/if-present.js';
import { SERVICE_LOGS } from '../../service/domain/service-logs.js';
import { defineCommand, EXIT, RuntimeError } from '../command.js';
import type { OperatorClient, ResponseAt } from '../operator-client.js';
import { formatTime, printable } from '../terminal.js';
import { lineOf, operatorCall, withOperator } from './call-command.js';

const erasureStatus = operatorCall({
  name: 'operator erasure status',
  summary: 'Show the erasure state of a proof',
  details: ['Exit code 1: an erased proof still has a deliverable.'],
  operands: ['<proofId>'],
  json: 'print the state as one line of JSON',
  call:
    ([proofId]) =>
    (client) =>
      client.call('GET proofs/{proofId}/erasure', { path: { proofId } }),
  columns({ proofId, state, erasedAt, confirmedAt, assetPresent }) {
    const erased = erasedAt === undefined ? '' : ` ${formatTime(erasedAt)}`;
    const confirmed = confirmedAt === undefined ? '' : `, confirmed ${formatTime(confirmedAt)}`;
    return [proofId, `${state}${erased}, deliverable ${assetPresent ? 'present' : 'gone'}${confirmed}`];
  },
  isGood: ({ state, assetPresent }) => state !== 'erased' || !assetPresent,
});

const SEQUENCES = [1, 999_999_999_999] as const;
const AUDIT = 'GET partners/{partnerId}/audit';

const readAudit = operatorCall({
  name: 'operator audit read',
  summary: "Print a partner's audit log, oldest entry first",
  operands: ['<partnerId>'],
  options: {
    from: { value: 'sequence', range: SEQUENCES, help: 'sequence number of the first entry (1)' },
    limit: { value: 'n', range: [1, 1000], help: 'maximum number of entries, 1 to 1000 (100)' },
  },
  json: 'print one line of JSON per entry',
  call:
    ([partnerId], { from = 1, limit = 100 }) =>
    (client) =>
      client.list(AUDIT, 'entries', { path: { partnerId }, query: { from, limit } }),
  columns: ({ sequence, at, action, actor, subjects }) => [
    String(sequence).padStart(6),
    formatTime(at),
    action.padEnd(24),
    actor,
    subjects.length === 0 ? undefined : subjects.join(' '),
  ],
});

/** The most bytes of a state file: half a million partners. */
const MOST_STATE_BYTES = 32 * 1024 * 1024;
const EXPORT_PAGE = 1000;

const exportAudit = defineCommand({
  name: 'operator audit export',
  service: 'operator',
  summary: 'Print the new entries of all audit logs as lines of JSON',
  details: [
    'Reads the logs of all partners and of the service, each from its oldest entry. With --state it prints',
    'only entries that no earlier run has printed, and records their numbers in the file at its end. An',
    'interrupted run prints its entries again. Run it each minute to feed a SIEM. Every entry has partnerId',
    'and sequence, which together are unique.',
  ],
  options: { state: { value: 'file', help: 'file that records which entries were printed' } },
  async run(_operands, { state }, context) {
    const { terminal } = context;
    const printed = new Map(state === undefined ? [] : Object.entries(await readState(state)));
    await withOperator(context, async (client) => {
      for (const partnerId of await allLogs(client))
        for (;;) {
          const query = { from: (printed.get(partnerId) ?? 0) + 1, limit: EXPORT_PAGE };
          const entries = await client.list(AUDIT, 'entries', { path: { partnerId }, query });
          for (const entry of entries) terminal.printJson(entry);
          const last = entries.at(-1);
          if (last !== undefined) printed.set(partnerId, last.sequence);
          if (entries.length < EXPORT_PAGE) break;
        }
    });
    context.signal.throwIfAborted();
    if (state !== undefined) await replaceFile(state, `${JSON.stringify(Object.fromEntries(printed))}\n`);
    return EXIT.good;
  },
});

async function allLogs(client: OperatorClient): Promise<readonly string[]> {
  const partners = await client.list('GET partners', 'partners');
  return [...partners.map(({ partnerId }) => partnerId), ...SERVICE_LOGS];
}

/** Returns the number of the last printed entry of each log. @throws RuntimeError for a file of another form */
async function readState(path: string): Promise<Readonly<Record<string, number>>> {
  const found = await ifPresent(stat(path));
  if (found === undefined) return {};
  try {
    if (found.size > MOST_STATE_BYTES) throw new SyntaxError('the file is too long');
    const state = JSON.parse(await readFile(path, 'utf8')) as Readonly<Record<string, number>>;
    if (Object.values(state).every((sequence) => Number.isSafeInteger(sequence) && sequence > 0))
      return state;
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error;
  }
  throw new RuntimeError(`${path} is not a state file of this command`);
}

/**
 * The number of findings after which the command stops. Without it, output could grow with the number of
 * proofs.
 */
const MOST_FINDINGS = 1000;

const auditStores = defineCommand({
  name: 'operator audit stores',
  service: 'operator',
  summary: 'Check records, deliverables, events and usage for consistency',
  details: [
    'Checks that every erasure older than ten minutes has its event and its confirmation, that every proof',
    'has its files, that every file belongs to a proof, that every review has its events, and that the used',
    'quota of each month equals the summed and the pending usage. A finding is reported only if two checks',
    'saw it. The command changes nothing. The service runs the same checks slowly in the background.',
    `The command stops after ${MOST_FINDINGS} findings and prints the --from value that continues the run.`,
    'Exit codes: 0 no finding; 1 at least one finding.',
  ],
  options: {
    from: { value: 'place', help: 'continue an earlier run: the --from value that it printed' },
    json: { help: 'print one line of JSON per step' },
  },
  async run(_operands, options, context) {
    const { terminal } = context;
    let found = 0;
    let looked = 0;
    await withOperator(context, async (client) => {
      let place = options.from;
      do {
        const step = await client.call('GET audit/stores', { query: { from: place } });
        found += step.findings.length;
        looked += step.looked;
        if (options.json) terminal.printJson(step);
        else
          for (const { kind, subject, detail } of step.findings)
            terminal.print(printable(`${kind.padEnd(18)}  ${subject}  ${detail}`));
        place = step.next;
      } while (place !== undefined && found < MOST_FINDINGS);
      if (options.json) return;
      terminal.print(`${looked} checked, ${found} ${found === 1 ? 'finding' : 'findings'}`);
      if (place !== undefined) terminal.print(printable(`continue with --from ${place}`));
    });
    return found === 0 ? EXIT.good : EXIT.notGood;
  },
});

const verifyAudit = operatorCall({
  name: 'operator audit verify',
  summary: 'Check audit logs for edits, deletions, reordering and truncation',
  details: [
    'Without an operand, it checks the logs of all partners, and the logs signers, devices, plans,',
    'content-keys and dead-letters of the service.',
    'Exit codes: 0 every log is sound; 1 at least one log is not.',
  ],
  operands: ['[partnerId]'],
  json: 'print the result for each log as one line of JSON',
  call:
    ([named]) =>
    async (client) => {
      const results: ({ readonly partnerId: string } & ResponseAt<`${typeof AUDIT}/verification`>)[] = [];
      for (const partnerId of named === undefined ? await allLogs(client) : [named])
        results.push({ partnerId, ...(await client.call(`${AUDIT}/verification`, { path: { partnerId } })) });
      return results;
    },
  print(results, terminal) {
    for (const { partnerId, ok, entries, fault } of results)
      if (ok === true)
        terminal.print(
          `${terminal.style('✔ SOUND', 'bold', 'green')}  ${lineOf([partnerId, `${entries} entries`])}`,
        );
      else {
        const reason = fault === undefined ? 'unknown fault' : `${fault.reason} at entry ${fault.sequence}`;
        terminal.print(`${terminal.style('✘ NOT SOUND', 'bold', 'red')}  ${lineOf([partnerId, reason])}`);
      }
  },
  isGood: ({ ok }) => ok === true,
});

export const RECORD_COMMANDS = [erasureStatus, readAudit, exportAudit, verifyAudit, auditStores];
