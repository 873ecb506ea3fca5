import type { EvidenceReport } from '../domain/evidence-report.js';
import { asksForReview, countEvidence } from '../domain/evidence-report.js';
import type { ProcessNote, ProcessNoteLine } from '../domain/process-note.js';
import type { Counter, CounterName, SessionEvidence } from '../domain/session-evidence.js';
import { CHANNELS, type Channel } from '../domain/trace.js';

/**
 * The version of the presentation policy. It increases with every change of what a note says about the same
 * report.
 */
export const NOTE_POLICY = '2';

const CHANNEL_NAMES: Readonly<Record<Channel, string>> = {
  session: 'saves and undo',
  transport: 'playback',
  tempo: 'tempo and meter',
  tracks: 'tracks',
  clips: 'clips',
  midi: 'MIDI entry',
  recording: 'audio recording',
  automation: 'automation',
  plugins: 'plug-ins',
  mixer: 'mixer',
  imports: 'imports',
  sourceMap: 'origin of sources',
  export: 'export',
};

/** The lines of a note: a slug, a label, and the counters with their labels. */
const ACTIVITY: readonly (readonly [
  code: string,
  label: string,
  counters: readonly (readonly [CounterName, string])[],
])[] = [
  [
    'recording',
    'Audio recording',
    [
      ['takesRecorded', 'takes'],
      ['takesRecordedInRealTime', 'takes seen to grow in real time'],
    ],
  ],
  [
    'midi',
    'MIDI',
    [
      ['midiNotesRecorded', 'notes played in'],
      ['midiNotesEntered', 'notes entered'],
      ['midiNotesEdited', 'notes edited'],
    ],
  ],
  [
    'imports',
    'Imports',
    [
      ['importsAdded', 'files'],
      ['importPlacements', 'clips made from them'],
    ],
  ],
  [
    'sources',
    'Sources made inside the workstation',
    [
      ['sourcesDerived', 'made of others'],
      ['sourcesAppeared', 'of unwitnessed origin'],
    ],
  ],
  [
    'clips',
    'Clips',
    [
      ['clipsCreated', 'created'],
      ['clipsMoved', 'moved'],
      ['clipsTrimmed', 'trimmed'],
      ['clipsSplit', 'split'],
      ['clipsCopied', 'copied'],
      ['clipsDeleted', 'deleted'],
    ],
  ],
  [
    'mixing',
    'Mixing',
    [
      ['automationEdits', 'edits of automation'],
      ['pluginsAdded', 'plug-ins added'],
      ['mixerChanges', 'changes of the mixer'],
    ],
  ],
];

/**
 * Writes the process note of a report. The same report always gives the same note. The note repeats the
 * content of the report in sentences and weighs nothing. It names unwatched channels as unwatched.
 */
export function writeProcessNote(report: EvidenceReport): ProcessNote {
  const session = report.session?.evidence;
  return {
    policyVersion: NOTE_POLICY,
    lines: [
      ...(session === undefined
        ? [line('no_session', 'No session was witnessed for this recording.')]
        : sessionLines(session)),
      ...gapLines(report),
      ...declarationLines(report),
      decisionLine(report),
    ],
  };
}

/** Returns the sentence about a record that proves nothing: of a simulator, or of an agent that was tried out. */
export function simulatedText({ adapter }: Pick<SessionEvidence, 'adapter'>): string {
  return adapter.name === 'simulator'
    ? 'Demo data: simulated, not recorded.'
    : 'Trial record: made to try the agent, and proves nothing.';
}

function sessionLines(session: SessionEvidence): readonly ProcessNoteLine[] {
  const { durationSeconds, sealed, simulated, counters, coverage } = session;
  const channelsWith = (support: string): readonly string[] =>
    CHANNELS.filter((channel) => coverage[channel].support === support).map((name) => CHANNEL_NAMES[name]);
  const interrupted = CHANNELS.filter((channel) => (coverage[channel].gapCount ?? 0) > 0).map(
    (channel) => CHANNEL_NAMES[channel],
  );
  return [
    line('session', `A session of ${durationText(durationSeconds)} was replayed from its signed record.`),
    ...(simulated ? [line('simulated', simulatedText(session))] : []),
    ...(sealed ? [] : [line('not_sealed', 'The record ends before the session was closed.')]),
    ...ACTIVITY.map(([code, label, names]) => line(code, `${label}: ${activityText(names, counters)}.`)),
    exportLine(session),
    ...listed('unsupported', 'Not witnessed by the agent', channelsWith('unsupported')),
    ...listed('unknown', 'Unknown whether witnessed', channelsWith('unknown')),
    ...listed('partial', 'Witnessed in part', channelsWith('partial')),
    ...listed('gaps', 'Not watched throughout', interrupted),
  ];
}

/**
 * Returns the counters of a line. Counters with the same word instead of a number share it. If a whole line has
 * one word, only the word is left.
 */
function activityText(
  names: readonly (readonly [CounterName, string])[],
  counters: SessionEvidence['counters'],
): string {
  const words = new Map<string, string[]>();
  const numbers = names.flatMap(([counter, name]) => {
    const text = counterText(counters[counter]);
    if (counters[counter].value !== undefined && counters[counter].status === 'observed')
      return [`${name}: ${text}`];
    words.set(text, [...(words.get(text) ?? []), name]);
    return [];
  });
  const [first, ...others] = words.keys();
  if (numbers.length === 0 && first !== undefined && others.length === 0) return first;
  return [...numbers, ...[...words].map(([word, named]) => `${named.join(', ')}: ${word}`)].join('; ');
}

function exportLine({ export: exported, counters }: SessionEvidence): ProcessNoteLine {
  const texts = {
    matches: 'The issued audio is a file that the session exported.',
    differs: 'The issued audio is not the file that the session exported last.',
  };
  return line(
    'export',
    exported === undefined
      ? `Export: ${counterText(counters.exportsFinished)}.`
      : (texts[exported.issuedAudio] ?? `Export: ${exported.issuedAudio}.`),
  );
}

/** The gaps that have a line of their own, by their codes. */
const GAP_LINES: Readonly<Record<string, readonly [code: string, text: string]>> = {
  session_begun_before_agent: [
    'begun_before',
    'The session had begun before it was watched. What was done before is not known.',
  ],
  export_not_tied_to_session: [
    'export_not_tied',
    'It was not shown that the export was made from the session as it was watched.',
  ],
  takes_not_finished: ['takes_not_finished', 'Some takes were still running when the record ended.'],
  plugins_may_add_sound: ['plugins', 'Plug-ins may have added sound that was not watched.'],
};

function gapLines({ unverifiable }: EvidenceReport): readonly ProcessNoteLine[] {
  const codes = new Set(unverifiable.map(({ code }) => code));
  return Object.entries(GAP_LINES).flatMap(([code, [slug, text]]) =>
    codes.has(code) ? [line(slug, text)] : [],
  );
}

function declarationLines({ declarations, unverifiable }: EvidenceReport): readonly ProcessNoteLine[] {
  const isAltered = unverifiable.some(({ code }) => code === 'creator_declaration_altered');
  const count = declarations.length;
  return [
    ...(count > 0
      ? [
          line(
            'declared',
            `Answers of the creator: ${count === 1 ? 'one submission' : `${count} submissions`}.`,
          ),
        ]
      : isAltered
        ? []
        : [line('none_declared', 'No answers of a creator are recorded.')]),
    ...(isAltered ? [line('declaration_altered', 'A stored declaration was altered and is left out.')] : []),
  ];
}

function decisionLine(report: EvidenceReport): ProcessNoteLine {
  const { conflicts } = countEvidence(report);
  // Lines of their own name the gaps of channels and those of `GAP_LINES`.
  const gaps = report.unverifiable.filter(
    ({ code }) => !code.startsWith('channel_') && !Object.hasOwn(GAP_LINES, code),
  ).length;
  const counts = `Conflicts: ${conflicts === 0 ? 'none' : conflicts}.${
    gaps === 0 ? '' : ` Other gaps that nothing can verify: ${gaps}.`
  }`;
  return asksForReview(report)
    ? line('needs_review', `${counts} The report asks for a decision by a person.`)
    : line('no_review', `${counts} The report asks for no decision.`);
}

/**
 * Returns the value of a counter. A counter without a number shows its status, because "not watched" does not
 * mean zero.
 */
function counterText({ status, value }: Counter): string {
  if (status === 'observed') return value === undefined ? 'observed' : String(value);
  return status === 'not_observed' ? 'none' : status;
}

function listed(code: string, label: string, names: readonly string[]): readonly ProcessNoteLine[] {
  return names.length === 0 ? [] : [line(code, `${label}: ${names.join(', ')}.`)];
}

function durationText(seconds: number): string {
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / 60);
  const rest = whole % 60;
  return minutes > 0 ? `${minutes} min ${rest} s` : `${rest} s`;
}

function line(code: string, text: string): ProcessNoteLine {
  return { code, text };
}
