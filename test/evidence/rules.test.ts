import { readFileSync } from 'node:fs';
import t from 'tap';
import { ARDOUR_CHANNELS } from '../../src/agents/ardour/follow.js';
import { AUDACITY_CHANNELS } from '../../src/agents/audacity/follow-project.js';
import {
  type Declaration,
  DIMENSIONS,
  SURVEY,
  type SurveyAnswers,
} from '../../src/witness/domain/declaration.js';
import type { RuleInputs } from '../../src/witness/domain/evidence.js';
import type { Channel, ChannelSupport, TraceEvent } from '../../src/witness/domain/trace.js';
import { Replayer } from '../../src/witness/replay/replayer.js';
import { OPPOSITES } from '../../src/witness/report/opposites.js';
import {
  concludeFromDeclarations,
  concludeFromTrace,
  EVIDENCE_RULES,
} from '../../src/witness/report/rules.js';

function codes(inputs: RuleInputs, ...answers: readonly SurveyAnswers[]): readonly string[] {
  const declarations = answers.map(
    (given, index): Declaration => ({
      surveyVersion: '1',
      submissionId: `sub_${index}`,
      subject: 'creator_1',
      submittedAt: 1,
      answers: given,
    }),
  );
  return [...concludeFromTrace(inputs), ...concludeFromDeclarations(inputs, declarations)].map(
    ({ code }) => code,
  );
}

const CASES: Readonly<Record<string, readonly [RuleInputs, SurveyAnswers, RuleInputs, SurveyAnswers]>> = {
  placements_without_recording_or_midi_entry: [
    { placements: 1, entries: 0 },
    {},
    { placements: 1, entries: 1 },
    {},
  ],
  imports_cover_most_of_export: [
    { importedSeconds: 51, exportSeconds: 100 },
    {},
    { importedSeconds: 50, exportSeconds: 100 },
    {},
  ],
  activity_after_export: [{ editsAfterExport: 1 }, {}, { editsAfterExport: 0 }, {}],
  edits_only_of_imported_material: [
    { clipEdits: 2, clipEditsOfImports: 2 },
    {},
    { clipEdits: 2, clipEditsOfImports: 1 },
    {},
  ],
  observed_import_vs_creator_origin_declaration: [
    { imports: 1 },
    { declaredOrigin: 'from_scratch' },
    { imports: 1 },
    { declaredOrigin: 'own_material' },
  ],
  declared_manual_work_vs_witnessed_input: [
    { entries: 0 },
    { manualWork: 'entire' },
    { entries: 0 },
    { manualWork: 'some' },
  ],
  attributed_import_vs_creator_ai_declaration: [
    { attributedImports: 1 },
    { aiRoles: ['none'] },
    { attributedImports: 1 },
    { aiRoles: ['vocals'] },
  ],
  contradictory_declarations: [
    {},
    { aiShareBand: 'none', aiRoles: ['vocals'] },
    {},
    { aiShareBand: 'none', aiRoles: ['artwork'] },
  ],
};

t.test('each rule fires where it applies, and not beside it, nor without one of its inputs', async (t) => {
  t.strictSame(
    Object.keys(CASES),
    EVIDENCE_RULES.map(({ code }) => code),
  );
  for (const { code, inputs } of EVIDENCE_RULES) {
    const [fires, answers, not, others] = CASES[code]!;
    t.strictSame(codes(fires, answers), [code]);
    t.strictSame(codes(not, others), [], `${code}: not`);
    for (const name of inputs) {
      const { [name]: _absent, ...rest } = fires;
      t.strictSame(codes(rest, answers), [], `${code} without ${name}`);
    }
  }
});

const COVER = 'imports_cover_most_of_export';
const PLACEMENTS = 'placements_without_recording_or_midi_entry';
const EDITS = 'edits_only_of_imported_material';
const BY_HAND = 'declared_manual_work_vs_witnessed_input';
const ALL = [PLACEMENTS, COVER, EDITS, BY_HAND];

const clip = (id: number, source: number | undefined, start: number, length: number): TraceEvent => ({
  kind: 'clip.created',
  at: 3,
  since: 2,
  clip: id,
  track: 1,
  ...(source === undefined ? {} : { source }),
  base: 'seconds',
  start,
  length,
});
const observed = (clips: number): TraceEvent => ({ kind: 'sourceMap.completed', at: 5, sources: 1, clips });
const exported = (rerender: 'matched' | 'differed' | 'not_tried' = 'matched'): TraceEvent => {
  return { kind: 'export.finished', at: 6, fileSha256: '0'.repeat(64), frames: 99, rate: 1, rerender };
};
const take = (input: 'hardware' | 'internal' | 'unknown', source: number): readonly TraceEvent[] => [
  { kind: 'recording.started', at: 2, take: source, input },
  { kind: 'recording.finished', at: 3, take: source, source, frames: 10, rate: 1 },
];
const derived = (source: number, from: number | undefined, manner: 'bounce' | 'other'): TraceEvent => {
  return { kind: 'source.derived', at: 3, since: 2, source, manner, ...(from === undefined ? {} : { from }) };
};
const EDITED: TraceEvent = { kind: 'clip.moved', at: 4, clip: 1, track: 1, start: 0 };
/** The events of one import over the 99 exported seconds, in a clip that was moved. */
const IMPORTED: readonly TraceEvent[] = [
  observed(0),
  { kind: 'track.added', at: 1, since: 0, track: 1, type: 'audio' },
  { kind: 'import.added', at: 2, since: 1, source: 1, manner: 'copied' },
  clip(1, 1, 0, 99),
  EDITED,
];

/** Sessions of one import with further events, and the resulting codes if much manual work is declared. */
const SESSIONS: Readonly<Record<string, readonly [events: readonly TraceEvent[], codes: readonly string[]]>> =
  {
    'the observed arrangement rendered as it was exported': [[observed(1), exported()], ALL],
    'observed again after the export': [
      // An edit can be made, exported and undone between two observations.
      [observed(1), exported('not_tried'), observed(1)],
      [],
    ],
    'made of the import, and played within the session': [
      [
        derived(2, 1, 'bounce'),
        ...take('internal', 3),
        derived(3, 2, 'bounce'),
        clip(2, 2, 0, 9),
        clip(3, 3, 0, 9),
        observed(3),
        exported(),
      ],
      ALL,
    ],
    'not rendered again': [[observed(1), exported('not_tried')], []],
    'rendered again as something else': [[observed(1), exported('differed')], []],
    'changed since it was observed': [[observed(1), EDITED, exported()], []],
    'changed between the export and the next observation': [
      [observed(1), exported('not_tried'), EDITED, observed(1), observed(1)],
      [],
    ],
    'out of sight since it was observed': [
      [observed(1), { kind: 'capture.gap', at: 5, since: 4, reason: 'unreadable' }, exported()],
      [],
    ],
    'out of sight before it was observed': [
      [{ kind: 'capture.gap', at: 5, since: 0, reason: 'agent_stopped' }, observed(1), exported()],
      ALL,
    ],
    'observed with a clip that was not reported': [[observed(2), exported()], []],
    'never observed': [[exported()], []],
    'never exported': [[observed(1)], []],
    'with a take in it': [[...take('hardware', 2), clip(2, 2, 0, 9), observed(2), exported()], [COVER]],
    'with a take in it whose input was not seen': [
      [...take('unknown', 2), derived(2, 1, 'bounce'), clip(2, 2, 0, 9), observed(2), exported()],
      [COVER],
    ],
    'with a take that is not placed': [
      [...take('hardware', 2), observed(1), exported()],
      [COVER, EDITS],
    ],
    'with a take that still runs': [
      [{ kind: 'recording.started', at: 2, take: 2, input: 'unknown' }, observed(1), exported()],
      [COVER, EDITS],
    ],
    'with notes': [
      [{ kind: 'midi.edited', at: 3, added: 1, removed: 0, changed: 0 }, observed(1), exported()],
      [COVER, EDITS],
    ],
    'with a source that was there before': [
      [
        { kind: 'source.appeared', at: 3, since: 3, source: 2, claims: 'nothing' },
        clip(2, 2, 0, 9),
        observed(2),
        exported(),
      ],
      [COVER],
    ],
    'with a clip of an unknown source': [[clip(2, undefined, 0, 9), observed(2), exported()], [COVER]],
    'with a source derived from an unknown one': [
      [derived(2, 1, 'bounce'), derived(2, undefined, 'bounce'), clip(2, 2, 0, 9), observed(2), exported()],
      [COVER],
    ],
    'with something that took the place of the import': [
      [derived(2, 1, 'other'), clip(2, 2, 0, 9), observed(2), exported()],
      [COVER],
    ],
    'with what was made of the import and of a source that was there': [
      [
        { kind: 'source.appeared', at: 3, since: 3, source: 2, claims: 'nothing' },
        derived(3, 1, 'bounce'),
        derived(3, 2, 'bounce'),
        clip(2, 3, 0, 9),
        observed(2),
        exported(),
      ],
      [COVER],
    ],
    'with a clip in beats of unknown length': [
      [
        {
          kind: 'clip.created',
          at: 3,
          since: 2,
          clip: 2,
          track: 1,
          source: 1,
          base: 'beats',
          start: 0,
          length: 9,
        },
        observed(2),
        exported(),
      ],
      [PLACEMENTS, EDITS, BY_HAND],
    ],
  };

function follows(
  channels: Readonly<Record<Channel, ChannelSupport>>,
  events: readonly TraceEvent[],
): readonly string[] {
  const replayer = new Replayer({ channels });
  for (const event of [...IMPORTED, ...events]) replayer.take(event);
  return codes(replayer.finish(true).inputs, { manualWork: 'entire' });
}

t.test('an agent that sees channels in part concludes what it knows, and nothing else', async (t) => {
  for (const [name, [events, expected]] of Object.entries(SESSIONS))
    for (const channels of [ARDOUR_CHANNELS, AUDACITY_CHANNELS])
      t.strictSame(follows(channels, events), expected, name);
});

t.test('opposite submissions are a conflict for each pair of answers', async (t) => {
  t.strictSame(
    codes(
      {},
      { declaredOrigin: 'from_scratch', aiShareBand: 'none' },
      { declaredOrigin: 'generated_material', aiShareBand: 'over_three_quarters' },
    ),
    Array(4).fill('contradictory_declarations'),
  );
  t.strictSame(
    codes({}, { aiShareBand: 'under_quarter' }, { aiShareBand: 'quarter_to_half' }),
    [],
    'neighbours',
  );
});

t.test('answers that mean "nothing is generated" contradict generated material', async (t) => {
  const wholly: readonly SurveyAnswers[] = [
    { declaredOrigin: 'from_scratch' },
    { manualWork: 'entire' },
    { contributionBand: 'all_self_made' },
  ];
  for (const own of wholly) {
    const found = codes({}, { ...own, aiShareBand: 'quarter_to_half', aiRoles: ['composition', 'vocals'] });
    t.strictSame(found, Array(3).fill('contradictory_declarations'));
    t.strictSame(codes({}, { ...own, aiShareBand: 'under_quarter', aiRoles: ['production'] }), []);
  }
});

t.test('the documentation lists for each answer the answers that contradict it', async (t) => {
  const page = readFileSync('docs/evidence.md', 'utf8');
  const sides = OPPOSITES.flatMap(([left, right]) => [[left, right] as const, [right, left] as const]);
  const words = (side: (typeof sides)[number][0], dimension: keyof typeof SURVEY): readonly string[] =>
    side[dimension] ?? [];
  const pairs = sides.flatMap(([one, other]) =>
    DIMENSIONS.flatMap((dimension) =>
      words(one, dimension).flatMap((answer) =>
        DIMENSIONS.flatMap((against) =>
          words(other, against).map((word) => `${dimension} ${answer} ${against} ${word}`),
        ),
      ),
    ),
  );
  t.strictSame(pairs.length, new Set(pairs).size, 'each pair is in the table once');
  for (const dimension of DIMENSIONS)
    for (const answer of SURVEY[dimension]) {
      if (answer === 'undisclosed') continue;
      const against = DIMENSIONS.flatMap((other) => {
        const found = SURVEY[other].filter((word) =>
          pairs.includes(`${dimension} ${answer} ${other} ${word}`),
        );
        return found.length === 0 ? [] : [`${other}: ${found.map((word) => `\`${word}\``).join(', ')}`];
      });
      t.not(against.length, 0, `${dimension}: ${answer}`);
      t.ok(
        page.includes(`| ${dimension} | \`${answer}\` | ${against.join('; ')} |`),
        `${dimension}: ${answer}`,
      );
    }
});

t.test('the page lists every rule with its version', async (t) => {
  const page = readFileSync('docs/evidence.md', 'utf8');
  for (const { code, version } of EVIDENCE_RULES) t.ok(page.includes(`| \`${code}\` | ${version} |`), code);
});
