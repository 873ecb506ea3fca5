import { defined } from '../../domain/defined.js';
import {
  type ActivityBucket,
  type ChannelCoverage,
  COUNTERS,
  type Counter,
  type CounterName,
  type CoverageGap,
  REPORT_LIMITS,
  type SessionEvidence,
} from '../../domain/session-evidence.js';
import { CHANNELS, type Channel, EVENTS, type TraceEvent, type TraceHeader } from '../../domain/trace.js';

/** Channels that a counter needs beside its own: a clip lies on a track, and cannot be told of without it. */
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
  /** Microseconds of all gaps, and the end of the latest one. */
  missed: number;
  missedUntil: number;
}

const FIRST_BUCKET_SECONDS = 60;

type Act = keyof Omit<ActivityBucket, 'atSeconds'>;
/** Channels whose acts are edits. */
const EDITED: readonly Channel[] = ['tempo', 'tracks', 'clips', 'midi', 'automation', 'plugins', 'mixer'];

/** Acts, by counter, by channel and over time. */
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

  /** Takes an act into its channel's coverage. */
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

  /** An act at a time of the session, for the view over time. */
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

  /** True where every act of the channel would have been seen. */
  isWatched(channel: Channel): boolean {
    return this.#support[channel] === 'supported' && this.#channels[channel].gapCount === 0;
  }

  /** True where at least some acts of the channel may be seen: else none that was seen is no zero. */
  looksAt(channel: Channel): boolean {
    return ['supported', 'partial'].includes(this.#support[channel]);
  }

  /**
   * Counters with their statuses.
   * @param isWhole true where the trace ends with its seal: else nobody knows what came after
   * @param doubtful counters of which "none" is not certain for a reason of their own
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

  /** Coverage of each channel. One that is not looked at has no zeros: its numbers are of what was told all the same. */
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

  /** Stretches in which something was seen. What no channel looks at has no number. */
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

/** Seconds of a report: whole milliseconds, so that every machine writes the same digits. */
export function seconds(microseconds: number): number {
  return milli(microseconds / 1_000_000);
}

export function milli(value: number): number {
  return Math.round(value * 1000) / 1000;
}
