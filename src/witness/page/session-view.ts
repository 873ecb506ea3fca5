import {
  COUNTER_WORDS,
  COUNTERS,
  type CoverageGap,
  type SessionEvidence,
} from '../domain/session-evidence.js';
import { CHANNEL_WORDS, CHANNELS, type Channel } from '../domain/trace.js';
import { moreThan } from './arrangement.js';
import { drawAxis, drawLane, number, percent, type Span } from './lanes.js';
import { html, type Markup } from './markup.js';
import {
  COUNTER_NAMES,
  clockText,
  counterText,
  countText,
  groupDigits,
  watchedCountText,
  wordText,
} from './words.js';

const CHART_HEIGHT = 120;
/** The most recordings that the page lists. The report lists the longest first. */
const LISTED_RECORDINGS = 12;

/** Renders the activity over the session. Times that were not watched are hatched. */
export function renderActivity({ activity, coverage, durationSeconds }: SessionEvidence): Markup {
  const { bucketSeconds, buckets } = activity;
  const gaps = distinctGaps(CHANNELS.flatMap((channel) => coverage[channel].gaps));
  const most = Math.max(
    1,
    ...buckets.map(({ edits = 0, recordings = 0, imports = 0 }) => edits + recordings + imports),
  );
  const total = Math.max(1, durationSeconds);
  const bars = buckets.flatMap(({ atSeconds, edits, recordings, imports }) => {
    const x = percent(atSeconds, total);
    const width = Math.max(0.25, percent(bucketSeconds, total) - 0.08);
    const counts = { edits: edits ?? 0, recorded: recordings ?? 0, imported: imports ?? 0 };
    let y = CHART_HEIGHT;
    const title = `${clockText(atSeconds)}: ${actsText(edits, recordings, imports)}`;
    return Object.entries(counts).map(([kind, count]) => {
      const height = (count / most) * (CHART_HEIGHT - 8);
      y -= height;
      return count > 0
        ? html`<rect class="block ${kind}" x="${number(Math.min(x, 99.75))}%" y="${number(y)}" width="${number(width)}%" height="${number(height)}"><title>${title}</title></rect>`
        : undefined;
    });
  });
  const sumOf = (act: 'edits' | 'recordings' | 'imports'): number | undefined => {
    const counts = buckets.flatMap((bucket) => bucket[act] ?? []);
    return counts.length === 0 ? undefined : counts.reduce((sum, count) => sum + count, 0);
  };
  const acts = actsText(sumOf('edits'), sumOf('recordings'), sumOf('imports'));
  const label = `Observed: ${acts}; ${countText(gaps.length, 'gap', 'gaps')} without observation`;
  return html`<p class="lead">The session lasted ${clockText(durationSeconds)}.</p><ul class="legend"><li>${swatch('block edits')}edits</li><li>${swatch('block recorded')}recordings</li><li>${swatch('block imported')}imports</li>${gaps.length > 0 ? html`<li>${swatch('gap')}not watched, or watched in part</li>` : undefined}</ul>
<div class="chart"><p class="scale">maximum ${groupDigits(most)} per ${bucketText(bucketSeconds)}</p><svg class="bars" width="100%" height="${CHART_HEIGHT}" role="img" aria-label="${label}" focusable="false">${gaps.map(
    ({ fromSeconds, toSeconds }) => {
      const x = percent(fromSeconds, total);
      return html`<rect class="gap" x="${number(x)}%" y="0" width="${number(Math.max(0.4, percent(toSeconds, total) - x))}%" height="${CHART_HEIGHT}"><title>Not watched: ${clockText(fromSeconds)} to ${clockText(toSeconds)}</title></rect>`;
    },
  )}${bars}</svg>${drawAxis(total, clockText)}</div>
<p class="soft">No bar means that the session agent observed nothing at that time.</p>
<details><summary>Activity as a table</summary><div class="wide" tabindex="0" role="region" aria-label="Activity"><table><thead><tr><th scope="col">From</th><th scope="col">Edits</th><th scope="col">Recordings</th><th scope="col">Imports</th></tr></thead><tbody>${buckets.map(
    ({ atSeconds, edits, recordings, imports }) =>
      html`<tr><th scope="row">${clockText(atSeconds)}</th><td>${edits ?? 'unknown'}</td><td>${recordings ?? 'unknown'}</td><td>${imports ?? 'unknown'}</td></tr>`,
  )}</tbody></table></div></details>`;
}

/**
 * Renders coverage and counters by channel. A channel that was not watched shows its support instead of a bar
 * and numbers.
 */
export function renderChannels(session: SessionEvidence): Markup {
  const total = Math.max(1, session.durationSeconds);
  const common = commonGaps(session.coverage);
  return html`${common.length === 0 ? undefined : html`<p class="lead">Nothing was watched: ${gapsText(common)}.</p>`}<ul class="legend"><li>${swatch('watched')}watched</li><li>${swatch('watched partial')}partly watched</li><li>${swatch('gap')}not watched, or unknown</li><li>${swatch('unwatched')}unsupported</li></ul>
<div class="channels">${CHANNELS.map((channel) => renderChannel(channel, session, total, common))}</div>
<div class="channel-axis">${drawAxis(total, clockText)}</div>`;
}

/** Returns the gaps that all watched channels have. They are shown once. */
function commonGaps(coverage: SessionEvidence['coverage']): readonly CoverageGap[] {
  const watched = CHANNELS.map((channel) => coverage[channel]).filter(
    ({ support }) => support === 'supported' || support === 'partial',
  );
  const [first, ...others] = watched.map(({ gaps }) => gaps);
  if (first === undefined || others.length === 0) return [];
  return first.filter((gap) => others.every((gaps) => gaps.some((other) => isSameGap(gap, other))));
}

function isSameGap(one: CoverageGap, other: CoverageGap): boolean {
  return (
    one.fromSeconds === other.fromSeconds && one.toSeconds === other.toSeconds && one.reason === other.reason
  );
}

/** Returns up to four gaps in words. */
function gapsText(gaps: readonly CoverageGap[], count = gaps.length): string {
  const listed = gaps.slice(0, 4).map(({ fromSeconds, toSeconds, reason }) => {
    const time =
      toSeconds - fromSeconds < 1
        ? `at ${clockText(fromSeconds)}`
        : `${clockText(fromSeconds)} to ${clockText(toSeconds)}`;
    return `${time} (${wordText(reason)})`;
  });
  return `${listed.join('; ')}${count > listed.length ? ' and others' : ''}`;
}

function renderChannel(
  channel: Channel,
  { coverage, counters }: SessionEvidence,
  total: number,
  common: readonly CoverageGap[],
): Markup {
  const { support, exact = 0, interval = 0, gaps, gapCount = 0 } = coverage[channel];
  const watched = support === 'supported' || support === 'partial';
  const names = COUNTER_NAMES.filter((name) => COUNTERS[name] === channel);
  const supportText =
    support === 'supported' ? 'supported' : support === 'partial' ? 'partly supported' : wordText(support);
  const how = watched
    ? [
        ...(exact > 0 ? [`${groupDigits(exact)} observed live`] : []),
        ...(interval > 0 ? [`${groupDigits(interval)} inferred by comparing before and after`] : []),
      ].join(', ')
    : '';
  const spans: Span[] = [
    {
      start: 0,
      end: total,
      kind:
        support === 'supported'
          ? 'watched'
          : support === 'partial'
            ? 'watched partial'
            : support === 'unsupported'
              ? 'unwatched'
              : 'gap',
    },
    ...(watched ? gaps.map(gapSpan) : []),
  ];
  const own = gaps.filter((gap) => !common.some((other) => isSameGap(gap, other)));
  return html`<section class="channel" id="channel-${channel}"><h3>${CHANNEL_WORDS[channel]} <span class="support ${watched ? 'is-watched' : 'is-not'}">${supportText}</span></h3>
${drawLane(spans, { total, height: 14, label: `${CHANNEL_WORDS[channel]}: ${supportText}${how === '' ? '' : `, ${how}`}` })}
${how === '' ? undefined : html`<p class="soft">${how}</p>`}${
  watched && own.length > 0
    ? html`<p class="soft">Not watched: ${gapsText(own, gapCount - (gaps.length - own.length))}</p>`
    : undefined
}
<dl class="counters">${names.map((name) => {
    const counter = counters[name];
    return html`<div><dt>${COUNTER_WORDS[name]}</dt><dd class="${counter.status === 'observed' ? 'is-number' : 'is-word'}">${counterText(counter)}</dd></div>`;
  })}</dl></section>`;
}

/** Renders the takes whose growth was observed. */
export function renderRecordings({ recordings, counters }: SessionEvidence): Markup | undefined {
  if (recordings.length === 0) return undefined;
  const count = counters.takesRecorded.value ?? recordings.length;
  return html`<div class="wide" tabindex="0" role="region" aria-label="Recordings"><table><thead><tr><th scope="col">Length</th><th scope="col">In real time</th><th scope="col">Input</th><th scope="col">Growth steps</th><th scope="col">Clips</th></tr></thead><tbody>${recordings
    .slice(0, LISTED_RECORDINGS)
    .map(
      ({ durationSeconds, realTime, input, growthSteps, placementCount }) =>
        html`<tr><th scope="row">${clockText(durationSeconds)}</th><td>${wordText(realTime)}</td><td>${wordText(input)}</td><td>${groupDigits(growthSteps)}</td><td>${placementCount === undefined ? 'unknown' : groupDigits(placementCount)}</td></tr>`,
    )}</tbody></table></div>${moreThan(count - Math.min(recordings.length, LISTED_RECORDINGS), 'Further takes that are not listed here, none of them longer')}`;
}

/** Returns the counts of acts with their nouns. A count is undefined if the agent did not watch the act. */
function actsText(
  edits: number | undefined,
  recordings: number | undefined,
  imports: number | undefined,
): string {
  return [
    watchedCountText(edits, 'edit'),
    watchedCountText(recordings, 'recording'),
    watchedCountText(imports, 'import'),
  ].join(', ');
}

/** Removes duplicate gaps of the same time. */
function distinctGaps(gaps: readonly CoverageGap[]): readonly CoverageGap[] {
  return [...new Map(gaps.map((gap) => [`${gap.fromSeconds} ${gap.toSeconds}`, gap])).values()];
}

function gapSpan({ fromSeconds, toSeconds, reason }: CoverageGap): Span {
  return {
    start: fromSeconds,
    end: toSeconds,
    kind: 'gap',
    title: `Not watched: ${clockText(fromSeconds)} to ${clockText(toSeconds)}, ${wordText(reason)}`,
  };
}

function swatch(kind: string): Markup {
  return html`<svg width="14" height="14" aria-hidden="true" focusable="false"><rect class="${kind}" x="0.5" y="0.5" width="13" height="13" rx="3"/></svg>`;
}

function bucketText(seconds: number): string {
  return seconds < 60 ? `${seconds} s` : seconds === 60 ? 'minute' : `${number(seconds / 60)} minutes`;
}
