import type { EvidenceReport } from '../domain/evidence-report.js';
import type { ImportedSource, SourceDetail, SourcePlacement } from '../domain/session-evidence.js';
import { drawAxis, drawLane, type Span } from './lanes.js';
import { html, type Markup } from './markup.js';
import { clockText, countText, groupDigits, nameText, watchedCountText } from './words.js';

/** The most rows of the drawing and of each table. The page states how many more there are. */
const DRAWN_TRACKS = 48;
const DRAWN_SOURCES = 24;
const TABLE_ROWS = 400;

const ORIGINS: Readonly<Record<string, string>> = {
  recorded: 'recorded here',
  imported: 'imported',
  midi: 'MIDI',
  derived: 'derived from other sources',
  unknown: 'origin unknown',
};

/** Renders the last observed arrangement: tracks if source detail is delivered, otherwise only imports. */
export function renderArrangement({ sourceDetail, importedSources = [], session }: EvidenceReport): Markup {
  const exportSeconds = session?.evidence.export?.durationSeconds;
  if (sourceDetail !== undefined) return renderDetail(sourceDetail, importedSources, exportSeconds);
  if (importedSources.length === 0 && exportSeconds === undefined)
    return html`<p class="empty">This report does not show the arrangement, because it has no source detail and no imports in the arrangement.</p>`;
  return renderSpans(importedSources, exportSeconds);
}

function renderDetail(
  detail: SourceDetail,
  sources: readonly ImportedSource[],
  exportSeconds: number | undefined,
): Markup {
  const { placements } = detail;
  const total = Math.max(
    1,
    exportSeconds ?? 0,
    ...placements.map(({ approximateSeconds }) => approximateSeconds?.end ?? 0),
  );
  const byTrack = new Map<string, SourcePlacement[]>(detail.tracks.map(({ trackId }) => [trackId, []]));
  for (const placement of placements) {
    const row = byTrack.get(placement.trackId);
    if (row === undefined) byTrack.set(placement.trackId, [placement]);
    else row.push(placement);
  }
  const tracks = new Map(detail.tracks.map((track) => [track.trackId, track]));
  // Empty tracks are only counted.
  const rows = [...byTrack].filter(([, row]) => row.length > 0);
  const empty = byTrack.size - rows.length;
  const present = new Set(placements.map(({ origin }) => origin as string));
  return html`<p class="lead">${watchedCountText(detail.trackCount, 'track')}, ${watchedCountText(detail.placementCount, 'clip')}${
    detail.observedAtSeconds === undefined
      ? undefined
      : html`, as last observed ${clockText(detail.observedAtSeconds)} into the session`
  }. Times are estimated from the tempo. The arrangement does not show what is audible in the final mix.</p>
${renderLegend(
  [...present],
  placements.some(({ state }) => state === 'removed'),
)}
<div class="lanes">${rows.slice(0, DRAWN_TRACKS).map(([trackId, row]) => {
    const track = tracks.get(trackId);
    const name = html`<b>${nameText(trackId)}</b> <span>${track?.type ?? 'unknown'}${track?.state === 'removed' ? ', removed' : ''}</span>`;
    return renderRow(name, row.flatMap(spanOf), total, `${nameText(trackId)}: ${trackText(row)}`);
  })}${
    exportSeconds === undefined
      ? undefined
      : renderRow(
          html`<b>Export</b> <span>${clockText(exportSeconds)}</span>`,
          [exportSpan(exportSeconds)],
          total,
          `Exported: ${clockText(exportSeconds)}`,
        )
  }<div class="row"><span></span>${drawAxis(total, clockText)}</div></div>
${moreThan(rows.length - DRAWN_TRACKS, 'Further tracks with clips in the report data')}${empty === 0 ? undefined : html`<p class="more">${countText(empty, 'track has', 'tracks have')} no clip.</p>`}
${renderSourceNames(sources, placements)}
<details><summary>The clips as a table</summary>${renderPlacementTable(placements, detail.placementCount ?? placements.length)}</details>`;
}

function spanOf(placement: SourcePlacement): readonly Span[] {
  const { origin, sourceId, approximateSeconds, state, placementId, edits } = placement;
  // Without a tempo, beats have no time: the table lists the placement, but no lane draws it.
  if (approximateSeconds === undefined) return [];
  const { start, end } = approximateSeconds;
  const word = originText(origin);
  return [
    {
      start,
      end,
      kind: `block ${origin in ORIGINS ? origin : 'unknown'}${state === 'removed' ? ' removed' : ''}`,
      ...(sourceId === undefined ? {} : { label: sourceId }),
      title: `${nameText(placementId)}: ${word}${sourceId === undefined ? '' : ` ${sourceId}`}, ${clockText(start)} to ${clockText(end)}, ${countText(edits, 'edit', 'edits')}${state === 'removed' ? ', removed' : ''}`,
    },
  ];
}

function trackText(row: readonly SourcePlacement[]): string {
  const counts = new Map<string, number>();
  for (const { origin, state } of row) {
    const word = `${originText(origin)}${state === 'removed' ? ', removed' : ''}`;
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return [...counts].map(([word, count]) => `${countText(count, 'clip', 'clips')} ${word}`).join('; ');
}

function renderPlacementTable(placements: readonly SourcePlacement[], count: number): Markup {
  return html`<div class="wide" tabindex="0" role="region" aria-label="Clips"><table><thead><tr><th scope="col">Clip</th><th scope="col">Track</th><th scope="col">Origin</th><th scope="col">Beats</th><th scope="col">Time (approximate)</th><th scope="col">Edits</th><th scope="col">State</th></tr></thead><tbody>${placements
    .slice(0, TABLE_ROWS)
    .map(
      ({ placementId, trackId, origin, sourceId, beats, approximateSeconds, edits, state }) =>
        html`<tr><th scope="row">${nameText(placementId)}</th><td>${nameText(trackId)}</td><td>${originText(origin)} ${sourceId}</td><td>${beats === undefined ? 'unknown' : `${beatText(beats.start)} to ${beatText(beats.end)}`}</td><td>${approximateSeconds === undefined ? 'unknown' : `${clockText(approximateSeconds.start)} to ${clockText(approximateSeconds.end)}`}</td><td>${edits}</td><td>${state}</td></tr>`,
    )}</tbody></table></div>${moreThan(count - Math.min(placements.length, TABLE_ROWS), 'Further clips that are not listed here')}`;
}

/** Renders only imports and the export: a report without source detail has no other placements. */
function renderSpans(sources: readonly ImportedSource[], exportSeconds: number | undefined): Markup {
  const total = Math.max(
    1,
    exportSeconds ?? 0,
    ...sources.flatMap((source) => spansOf(source).map(({ endSeconds }) => endSeconds)),
  );
  const placed = sources.filter((source) => spansOf(source).length > 0);
  return html`<p class="lead">Positions of the imported files in the arrangement. This report has no source detail, so it does not show tracks and other clips.</p>
${renderLegend(placed.length > 0 ? ['imported'] : [], false)}
<div class="lanes">${placed.slice(0, DRAWN_SOURCES).map((source) =>
    renderRow(
      html`<b>${source.sourceId}</b> <span>import</span>`,
      spansOf(source).map(({ startSeconds, endSeconds }) => ({
        start: startSeconds,
        end: endSeconds,
        kind: 'block imported',
        title: `${source.sourceId}: ${clockText(startSeconds)} to ${clockText(endSeconds)}`,
      })),
      total,
      `Import ${source.sourceId}: ${spansOf(source)
        .map(({ startSeconds, endSeconds }) => `${clockText(startSeconds)} to ${clockText(endSeconds)}`)
        .join(', ')}`,
    ),
  )}${
    exportSeconds === undefined
      ? undefined
      : renderRow(
          html`<b>Export</b> <span>${clockText(exportSeconds)}</span>`,
          [exportSpan(exportSeconds)],
          total,
          `Exported: ${clockText(exportSeconds)}`,
        )
  }<div class="row"><span></span>${drawAxis(total, clockText)}</div></div>
${moreThan(placed.length - DRAWN_SOURCES, 'Further imports, which are listed below')}${placed.length === 0 ? undefined : renderSpanTable(placed)}`;
}

/** Returns the spans of an import, or none if its placements were not watched. */
function spansOf({ placements }: ImportedSource): NonNullable<ImportedSource['placements']>['spans'] {
  return placements?.spans ?? [];
}

function renderSpanTable(placed: readonly ImportedSource[]): Markup {
  const rows = placed.flatMap((source) =>
    spansOf(source).map((span) => ({ sourceId: source.sourceId, ...span })),
  );
  return html`<details><summary>Positions as a table</summary><div class="wide" tabindex="0" role="region" aria-label="Positions of imports"><table><thead><tr><th scope="col">Import</th><th scope="col">From (approximate)</th><th scope="col">To (approximate)</th></tr></thead><tbody>${rows
    .slice(0, TABLE_ROWS)
    .map(
      ({ sourceId, startSeconds, endSeconds }) =>
        html`<tr><th scope="row">${sourceId}</th><td>${clockText(startSeconds)}</td><td>${clockText(endSeconds)}</td></tr>`,
    )}</tbody></table></div>${moreThan(rows.length - TABLE_ROWS, 'Further positions in the report data')}</details>`;
}

/** Renders a sentence that explains the short names of imports in the drawing. */
function renderSourceNames(
  sources: readonly ImportedSource[],
  placements: readonly SourcePlacement[],
): Markup | undefined {
  const shown = new Set(placements.map(({ sourceId }) => sourceId));
  const named = sources.filter(({ sourceId }) => shown.has(sourceId));
  if (named.length === 0) return undefined;
  const [first, last] = [named[0]!.sourceId, named.at(-1)!.sourceId];
  return html`<p class="more">${first === last ? html`<b>${first}</b> is an imported file` : html`<b>${first}</b> to <b>${last}</b> are imported files`}, listed below.</p>`;
}

function renderRow(name: Markup, spans: readonly Span[], total: number, label: string): Markup {
  return html`<div class="row"><span class="name">${name}</span>${drawLane(spans, { total, label })}</div>`;
}

function exportSpan(seconds: number): Span {
  return { start: 0, end: seconds, kind: 'exported', title: `Exported: ${clockText(seconds)}` };
}

function renderLegend(origins: readonly string[], removed: boolean): Markup | undefined {
  const known = Object.keys(ORIGINS).filter((origin) => origins.includes(origin));
  if (known.length === 0 && !removed) return undefined;
  return html`<ul class="legend">${known.map((origin) => html`<li><svg width="14" height="14" aria-hidden="true" focusable="false"><rect class="block ${origin}" width="14" height="14" rx="3"/></svg>${originText(origin)}</li>`)}${
    removed
      ? html`<li><svg width="14" height="14" aria-hidden="true" focusable="false"><rect class="block removed" x="1" y="1" width="12" height="12" rx="3"/></svg>removed again</li>`
      : undefined
  }</ul>`;
}

function originText(origin: string): string {
  return Object.hasOwn(ORIGINS, origin) ? ORIGINS[origin]! : origin;
}

function beatText(beats: number): string {
  return String(Math.round(beats * 100) / 100);
}

/** Renders a sentence about entries that are not shown, if there are any. */
export function moreThan(count: number, what: string): Markup | undefined {
  return count > 0 ? html`<p class="more">${what}: ${groupDigits(count)}.</p>` : undefined;
}
