/**
 * Honest sessions of different kinds in the real Ardour: no report of them asks for review or has a conflict. Their
 * exports are issued with their traces, and independent readers trust what is issued.
 */
import { execFileSync } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { DeviceKey } from '../../src/witness/capture/index.js';
import type { CounterName } from '../../src/witness/domain/session-evidence.js';
import { collect, TestService } from '../fixtures/service.js';
import { needs } from '../fixtures/tools.js';
import { type Studio, watched } from './ardour/watched.js';

interface Honest {
  readonly name: string;
  /** Runs of Ardour, each with its steps of work.lua. */
  readonly runs: readonly (readonly string[])[];
  readonly before?: readonly string[];
  /** Counters of the report: a number is observed, and otherwise the status is the word. */
  readonly counters: Partial<Record<CounterName, number | 'unknown'>>;
}

const SESSIONS: readonly Honest[] = [
  { name: 'a take', runs: [['take', 'save', 'export']], counters: { takesRecorded: 1, exportsFinished: 1 } },
  {
    name: 'notes on a synthesizer, played and entered',
    runs: [['synth', 'save', 'notes', 'save', 'export']],
    counters: { midiNotesRecorded: 2, midiNotesEntered: 2, tracksAdded: 2 },
  },
  {
    name: 'a take through a reverb',
    runs: [['take', 'reverb', 'save', 'export']],
    counters: { takesRecorded: 1, pluginsAdded: 1 },
  },
  {
    name: 'two takes and a comp of them',
    runs: [['take', 'save', 'take', 'comp', 'save', 'export']],
    counters: { takesRecorded: 2 },
  },
  {
    name: 'a tempo ramp under a take',
    runs: [['ramp', 'save', 'take', 'save', 'export']],
    counters: { takesRecorded: 1, tempoChanges: 1 },
  },
  {
    name: 'a crash amid a take, and the work after it',
    runs: [
      ['take', 'save', 'die'],
      ['take', 'save', 'export'],
    ],
    counters: { takesRecorded: 2 },
  },
  {
    name: 'two exports without an edit between them',
    runs: [['take', 'save', 'export', 'exportStem']],
    counters: { takesRecorded: 1, exportsFinished: 2 },
  },
  {
    name: 'a mix with automation and an equaliser',
    runs: [['take', 'save', 'mix', 'equalise', 'automate', 'save', 'export']],
    counters: { takesRecorded: 1, automationEdits: 2, pluginsAdded: 1 },
  },
  {
    name: 'a bounce of a take',
    runs: [['take', 'save', 'bounce', 'save', 'export']],
    counters: { takesRecorded: 1, sourcesDerived: 1 },
  },
  {
    name: 'a second day, with an agent that was not there on the first',
    before: ['take', 'save'],
    runs: [['take', 'save', 'export']],
    counters: { takesRecorded: 1 },
  },
];

const skip = needs('ardour7-lua');

t.test('honest sessions ask for no review', { skip }, async (t) => {
  const service = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' });
  t.teardown(() => service.stop());
  const { operator } = service.service.operations;
  const { partnerId, caller } = await service.partner();
  const issued: string[] = [];
  const folder = t.testdir();
  for (const { name, runs, before, counters } of SESSIONS)
    await t.test(name, async (t) => {
      const key = DeviceKey.generate();
      await operator.enrolDevice({ deviceId: key.deviceId });
      const work =
        (...all: readonly (readonly string[])[]) =>
        async ({ ardour }: Studio) => {
          for (const steps of all) await ardour(...steps);
        };
      const { directory, trace, session, codes, conflicts, reviewed } = await watched(t, work(...runs), {
        key,
        ...(before === undefined ? {} : { before: work(before) }),
      });
      t.comment(`${name}: ${codes.includes('export_not_tied_to_session') ? 'not tied' : 'tied'}`);
      t.strictSame({ conflicts, reviewed }, { conflicts: [], reviewed: [] });
      for (const [counter, value] of Object.entries(counters) as [CounterName, number | 'unknown'][])
        t.strictSame(
          session.counters[counter],
          value === 'unknown' ? { status: value } : { status: 'observed', value },
          counter,
        );

      const { proofId } = await operator.issueProof({
        partnerId,
        songTitle: name,
        fileName: 'mix.wav',
        carrier: 'embedded',
        audio: createReadStream(join(directory, 'export/mix.wav')),
        evidence: { trace: createReadStream(trace) },
      });
      const file = await collect(await (await operator.readAsset(proofId, 'audio')).read());
      const { verdict, evidenceReport } = await service.verify(caller, file);
      t.equal(verdict, 'valid');
      t.match(evidenceReport?.session?.evidence.export, { issuedAudio: 'matches' });
      const path = join(folder, `${issued.length}.wav`);
      await writeFile(path, file);
      issued.push(path);
    });

  const authority = join(folder, 'authority.pem');
  await writeFile(authority, operator.readAuthority());
  const judgements = JSON.parse(
    execFileSync(
      process.env['TAKEMARK_C2PA_PYTHON']!,
      ['test/fixtures/c2pa-readers.py', authority, ...issued],
      {
        encoding: 'utf8',
        maxBuffer: 64 * 1024 * 1024,
      },
    ),
  ) as readonly Record<string, unknown>[];
  t.match(
    judgements,
    issued.map(() => ({
      c2paRs: { manifest: { validation_state: 'Trusted' } },
      encypher: { integrity: 'valid', trust: { status: 'valid_for_supplied_material' } },
    })),
    'independent readers trust each issued file',
  );
});
