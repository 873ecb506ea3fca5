import type { EvidenceReport } from '../domain/evidence-report.js';
import { COUNTERS, REPORT_LIMITS } from '../domain/session-evidence.js';
import { CHANNELS } from '../domain/trace.js';

/** An error for a value that is not an evidence report. The message names the faulty member. */
export class UnreadableReport extends Error {}

/** The largest number of entries in lists that have no limit of their own in a report. */
const LISTED = 4096;

type Members = Readonly<Record<string, unknown>>;
/** Checks a value and returns its content. The path is for the message. */
type Reader = (value: unknown, path: string) => unknown;

/**
 * Reads an evidence report from untrusted JSON. Unknown classes, statuses, codes, dimensions and answers are
 * accepted (rule 9.8). Unknown members are omitted, and lists are cut at the limits of a report. A missing
 * counter or channel is unknown, never zero.
 * @throws UnreadableReport
 */
export function parseReport(value: unknown): EvidenceReport {
  return report(value, 'evidenceReport') as EvidenceReport;
}

const text: Reader = (value, path) => (typeof value === 'string' ? value : refuse(path, 'text'));
const flag: Reader = (value, path) => (typeof value === 'boolean' ? value : refuse(path, 'true or false'));
const amount: Reader = (value, path) =>
  typeof value === 'number' && Number.isFinite(value) ? value : refuse(path, 'a number');
const notNegative: Reader = (value, path) =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : refuse(path, 'a number from 0');
const words: Reader = (value, path) =>
  Array.isArray(value) ? list(text, 64)(value, path) : text(value, path);
const scalar: Reader = (value, path) => (typeof value === 'number' ? amount(value, path) : text(value, path));

/** Reads an object of known members. A `?` after a name marks an optional member. */
function members(readers: Readonly<Record<string, Reader>>): Reader {
  return (value, path) => {
    const source = objectAt(value, path);
    const read: Record<string, unknown> = {};
    for (const [key, reader] of Object.entries(readers)) {
      const name = key.replace('?', '');
      const member = Object.hasOwn(source, name) ? source[name] : undefined;
      if (member !== undefined) read[name] = reader(member, `${path}.${name}`);
      else if (!key.endsWith('?')) refuse(`${path}.${name}`, 'there');
    }
    return read;
  };
}

/** Reads an object with arbitrary member names. */
function open(reader: Reader, most: number): Reader {
  return (value, path) =>
    Object.fromEntries(
      Object.entries(objectAt(value, path))
        .slice(0, most)
        .map(([name, member]) => [name, reader(member, `${path}.${name}`)]),
    );
}

/** Reads an object with the given names. `missing` is the value of a missing member. */
function closed(names: readonly string[], reader: Reader, missing: unknown): Reader {
  return (value, path) => {
    const source = objectAt(value, path);
    return Object.fromEntries(
      names.map((name) => [
        name,
        Object.hasOwn(source, name) ? reader(source[name], `${path}.${name}`) : missing,
      ]),
    );
  };
}

function list(reader: Reader, most: number): Reader {
  return (value, path) =>
    Array.isArray(value)
      ? value.slice(0, most).map((entry, at) => reader(entry, `${path}[${at}]`))
      : refuse(path, 'a list');
}

function objectAt(value: unknown, path: string): Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Members)
    : refuse(path, 'an object');
}

function refuse(path: string, what: string): never {
  throw new UnreadableReport(`${path.slice(0, 200)} is not ${what}`);
}

const fact = members({
  code: text,
  contentClass: text,
  status: text,
  'dimension?': text,
  'answer?': text,
  'submissionId?': text,
  'ruleVersion?': notNegative,
  'values?': open(scalar, 64),
});

const counter: Reader = (value, path) => {
  const read = members({ status: text, 'value?': notNegative })(value, path) as Members;
  // With any other status, a number does not count what was watched.
  return read['status'] === 'observed' || read['status'] === 'not_observed'
    ? read
    : { status: read['status'] };
};

const coverage = members({
  support: text,
  'exact?': notNegative,
  'interval?': notNegative,
  gaps: list(members({ fromSeconds: notNegative, toSeconds: notNegative, reason: text }), REPORT_LIMITS.gaps),
  'gapCount?': notNegative,
});

const session = members({
  traceSha256: text,
  traceBytes: notNegative,
  traceVersion: notNegative,
  simulated: flag,
  adapter: members({ name: text, version: text, 'dawVersion?': text }),
  device: members({ deviceId: text, standing: text }),
  startedAt: amount,
  durationSeconds: notNegative,
  sealed: flag,
  events: notNegative,
  counters: closed(Object.keys(COUNTERS), counter, { status: 'unknown' }),
  coverage: closed(CHANNELS, coverage, { support: 'unknown', gaps: [] }),
  recordings: list(
    members({
      durationSeconds: notNegative,
      realTime: text,
      input: text,
      growthSteps: notNegative,
      'placementCount?': notNegative,
    }),
    REPORT_LIMITS.recordings,
  ),
  activity: members({
    bucketSeconds: notNegative,
    buckets: list(
      members({
        atSeconds: notNegative,
        'edits?': notNegative,
        'recordings?': notNegative,
        'imports?': notNegative,
      }),
      REPORT_LIMITS.activityBuckets,
    ),
  }),
  'export?': members({
    fileSha256: text,
    issuedAudio: text,
    'durationSeconds?': notNegative,
    rerender: text,
  }),
});

const importedSource = members({
  sourceId: text,
  manner: text,
  'samplesSha256?': text,
  'originalSha256?': text,
  'durationSeconds?': notNegative,
  'placements?': members({
    count: notNegative,
    approximateSeconds: notNegative,
    spans: list(members({ startSeconds: notNegative, endSeconds: notNegative }), REPORT_LIMITS.spans),
  }),
  'detections?': list(
    members({
      detector: text,
      detectorVersion: text,
      'likelihood?': members({ value: amount, unit: text }),
      'generator?': text,
    }),
    64,
  ),
});

const sourceDetail = members({
  version: notNegative,
  consentVersion: text,
  'observedAtSeconds?': notNegative,
  tracks: list(members({ trackId: text, type: text, state: text }), REPORT_LIMITS.detailTracks),
  'trackCount?': notNegative,
  placements: list(
    members({
      placementId: text,
      trackId: text,
      'sourceId?': text,
      origin: text,
      'beats?': members({ start: amount, end: amount }),
      'approximateSeconds?': members({ start: notNegative, end: notNegative }),
      state: text,
      edits: notNegative,
    }),
    REPORT_LIMITS.detailPlacements,
  ),
  'placementCount?': notNegative,
});

const report = members({
  version: notNegative,
  facts: list(fact, LISTED),
  conflicts: list(fact, LISTED),
  unverifiable: list(fact, LISTED),
  declarations: list(
    members({
      surveyVersion: text,
      submissionId: text,
      subject: text,
      submittedAt: amount,
      answers: open(words, 64),
      recordedAt: amount,
      bindingStatus: text,
    }),
    LISTED,
  ),
  'engine?': members({ 'facts?': notNegative, overlay: notNegative, revision: notNegative }),
  'session?': members({ evidence: session }),
  'importedSources?': list(importedSource, REPORT_LIMITS.importedSources),
  'importedSourceCount?': notNegative,
  'sourceDetail?': sourceDetail,
});
