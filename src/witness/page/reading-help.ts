import { html, type Markup } from './markup.js';
import type { ReportSubject } from './page-input.js';

/** Renders whose proof this is, the digests of its file, and how a reader checks the page. */
export function renderCheck({
  issuer,
  service,
  fileSha256,
  verdict,
  boundAudioSha256,
}: ReportSubject): Markup {
  const rows: readonly (readonly [string, string | Markup | undefined])[] = [
    ['Issuer', issuer],
    ['Service', service],
    [
      `${verdict === undefined ? 'Delivered file' : 'Verified file'}, SHA-256`,
      fileSha256 === undefined ? undefined : html`<code>${fileSha256}</code>`,
    ],
    [
      'Bound audio, SHA-256',
      boundAudioSha256 === undefined ? undefined : html`<code>${boundAudioSha256}</code>`,
    ],
  ];
  const shown = rows.filter(([, value]) => value !== undefined);
  return html`${shown.length === 0 ? undefined : html`<dl class="technical">${shown.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`}
<p class="lead check">This page is a copy and is not signed. To check it, verify the audio file itself with the service: run <code>takemark verify</code> with the file, or send the file to <code>${service ?? ''}/v1/verifications</code>. The response has the verdict, the proof id and the report of today.${fileSha256 === undefined ? undefined : ' The SHA-256 of your file must equal the digest above.'}</p>`;
}

/** The words that a reader needs, each with its meaning. */
const GLOSSARY: readonly (readonly [string, string])[] = [
  ['Credential', 'The signed statement in or beside an audio file that links the file to this proof.'],
  [
    'Production record',
    'What was observed while the recording was made, and what its creator declared. It never changes the credential.',
  ],
  [
    'Session agent',
    'A program beside the audio workstation. It observes the session and signs what it sees.',
  ],
  ['Trace', 'The signed file in which the session agent records its observations.'],
  ['Clip', 'A piece of audio or MIDI at a place in the arrangement.'],
  ['Gap', 'A time, or a kind of activity, that the agent did not watch. Nothing is known about it.'],
];

/** Renders the glossary. */
export function renderGlossary(): Markup {
  return html`<dl class="technical">${GLOSSARY.map(([word, meaning]) => html`<div><dt>${word}</dt><dd>${meaning}</dd></div>`)}</dl>`;
}
