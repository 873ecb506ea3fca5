import { defined } from '../../core/domain/defined.js';
import {
  type ActivityBucket,
  type ChannelCoverage,
  COUNTERS,
  type Counter,
  type CounterName,
  type CoverageGap,
  REPORT_LIMITS,
  type SessionEvidence,
} from '../domain/session-evidence.js';
import { CHANNELS, type Channel, EVENTS, type TraceEvent, type TraceHeader } from '../domain/trace.js';

/**
 * Returns the channels that a counter needs. A clip is on a track and cannot be reported without its track.
 */
function channelsOf(name: CounterName): readonly Channel[] {
  const channel = COUNTERS[name];
  if (name === 'importPlacements') return [channel, 'clips', 'tracks'];
  return channel === 'clips' ? [channel, 'tracks'] : [channel];
}

interface Watched {
  exact: number;
  interval: number;
  readonly gaps: CoverageGap[];
  gapCount: number;
  /** The total length of all gaps, and the end of the latest one, in microseconds. */
  missed: number;
  missedUntil: number;
}

const FIRST_BUCKET_SECONDS = 60;

type Act = keyof Omit<ActivityBucket, 'atSeconds'>;
/** The channels whose acts are edits. */
const EDITED: readonly Channel[] = ['tempo', 'tracks', 'clips', 'midi', 'automation', 'plugins', 'mixer'];

/** Counts acts by counter, by channel and over time. */
export class SessionCounters {
  readonly #counts = Object.fromEntries(Object.keys(COUNTERS).map((name) => [name, 0])) as Record<
    CounterName,
    number
  >;
  readonly #channels = Object.fromEntries(
    CHANNELS.map((channel): [Channel, Watched] => [
      channel,
      { exact: 0, interval: 0, gaps: [], gapCount: 0, missed: 0, missedUntil: 0 },
    ]),
  ) as unknown as Record<Channel, Watched>;
  readonly #support: TraceHeader['channels'];
  #bucketSeconds = FIRST_BUCKET_SECONDS;
  #buckets: (Record<Act, number> | undefined)[] = [];

  constructor(support: TraceHeader['channels']) {
    this.#support = support;
  }

  count(name: CounterName, by = 1): void {
    this.#counts[name] += by;
  }

  of(name: CounterName): number {
    return this.#counts[name];
  }

  /** Adds an act to the coverage of its channel. */
  witness({ kind, since }: TraceEvent): void {
    const watched = this.#channels[EVENTS[kind].channel];
    if (since === undefined) watched.exact += 1;
    else watched.interval += 1;
  }

  gap(channel: Channel, since: number, at: number, reason: string): void {
    const watched = this.#channels[channel];
    watched.gapCount += 1;
    watched.missed += Math.max(0, at - Math.max(since, watched.missedUntil));
    watched.missedUntil = Math.max(at, watched.missedUntil);
    if (watched.gaps.length < REPORT_LIMITS.gaps)
      watched.gaps.push({ fromSeconds: seconds(since), toSeconds: seconds(at), reason });
  }

  missedSeconds(channel: Channel): number {
    return seconds(this.#channels[channel].missed);
  }

  /** Adds an act at a time of the session, for the view over time. */
  act(at: number, act: Act): void {
    let index = Math.floor(at / 1_000_000 / this.#bucketSeconds);
    while (index >= REPORT_LIMITS.activityBuckets) {
      this.#buckets = merge(this.#buckets);
      this.#bucketSeconds *= 2;
      index = Math.floor(at / 1_000_000 / this.#bucketSeconds);
    }
    const bucket = this.#buckets[index] ?? { edits: 0, recordings: 0, imports: 0 };
    this.#buckets[index] = bucket;
    bucket[act] += 1;
  }

  /** Reports whether every act of the channel would have been observed. */
  isWatched(channel: Channel): boolean {
    return this.#support[channel] === 'supported' && this.#channels[channel].gapCount === 0;
  }

  /**
   * Reports whether at least some acts of the channel can be observed. Otherwise an absence of acts does not
   * mean zero.
   */
  looksAt(channel: Channel): boolean {
    return ['supported', 'partial'].includes(this.#support[channel]);
  }

  /**
   * Returns the counters with their statuses.
   * @param isWhole true when the trace ends with its seal. Otherwise later acts are unknown
   * @param doubtful counters whose zero is uncertain for another reason
   */
  counters(isWhole: boolean, doubtful: ReadonlySet<CounterName>): SessionEvidence['counters'] {
    return Object.fromEntries(
      (Object.keys(COUNTERS) as CounterName[]).map((name): [CounterName, Counter] => {
        const value = this.#counts[name];
        if (value > 0) return [name, { status: 'observed', value }];
        const channels = channelsOf(name);
        if (channels.some((channel) => this.#support[channel] === 'unsupported'))
          return [name, { status: 'unsupported' }];
        const none = isWhole && !doubtful.has(name) && channels.every((channel) => this.isWatched(channel));
        return [name, none ? { status: 'not_observed', value } : { status: 'unknown' }];
      }),
    ) as SessionEvidence['counters'];
  }

  /**
   * Returns the coverage of each channel. An unobserved channel has no zeros, but its reported acts are
   * counted.
   */
  coverage(): SessionEvidence['coverage'] {
    return Object.fromEntries(
      CHANNELS.map((channel): [Channel, ChannelCoverage] => {
        const { exact, interval, gaps, gapCount } = this.#channels[channel];
        const support = this.#support[channel];
        return [
          channel,
          this.looksAt(channel)
            ? { support, exact, interval, gaps, gapCount }
            : defined({
                support,
                exact: exact || undefined,
                interval: interval || undefined,
                gaps,
                gapCount: gapCount || undefined,
              }),
        ];
      }),
    ) as unknown as SessionEvidence['coverage'];
  }

  /**
   * Returns the time buckets with observed acts. Acts of unobserved channels have no number unless some were
   * reported.
   */
  activity(): SessionEvidence['activity'] {
    const isImports = this.looksAt('imports');
    const isRecordings = this.looksAt('recording') && this.looksAt('midi');
    const isEdits = EDITED.every((channel) => this.looksAt(channel));
    const buckets = this.#buckets.flatMap((bucket, index): ActivityBucket[] =>
      bucket === undefined
        ? []
        : [
            {
              atSeconds: index * this.#bucketSeconds,
              ...(isEdits || bucket.edits > 0 ? { edits: bucket.edits } : {}),
              ...(isRecordings || bucket.recordings > 0 ? { recordings: bucket.recordings } : {}),
              ...(isImports || bucket.imports > 0 ? { imports: bucket.imports } : {}),
            },
          ],
    );
    return { bucketSeconds: this.#bucketSeconds, buckets };
  }
}

function merge(buckets: readonly (Record<Act, number> | undefined)[]): (Record<Act, number> | undefined)[] {
  const merged: (Record<Act, number> | undefined)[] = [];
  buckets.forEach((bucket, index) => {
    if (bucket === undefined) return;
    const into = merged[index >> 1] ?? { edits: 0, recordings: 0, imports: 0 };
    merged[index >> 1] = into;
    into.edits += bucket.edits;
    into.recordings += bucket.recordings;
    into.imports += bucket.imports;
  });
  return merged;
}

/**
 * Converts to the seconds of a report, rounded to milliseconds, so that every machine writes the same digits.
 */
export function seconds(microseconds: number): number {
  return milli(microseconds / 1_000_000);
}

export function milli(value: number): number {
  return Math.round(value * 1000) / 1000;
}
