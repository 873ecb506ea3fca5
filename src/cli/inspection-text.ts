import { describeFinding } from '../core/domain/findings.js';
import type {
  FindingEffect,
  InspectedCredential,
  InspectedFinding,
  InspectedKind,
  Inspection,
} from '../core/domain/inspection.js';
import {
  DECISION_REASON_MEANINGS,
  REPORT_REASON_MEANINGS,
  SAMPLES_REASON_MEANINGS,
} from '../core/domain/reference/reasons.js';
import { formatTime, printable, type Terminal, table } from './terminal.js';

const KINDS: Readonly<Record<InspectedKind, string>> = {
  production_record: 'production record',
  local_seal: 'local seal',
  foreign: 'credential of another program',
  altered: 'altered credential',
  not_a_store: 'no credential',
  not_read: 'one of several credentials, not read',
};

const EFFECTS: Readonly<Record<FindingEffect, string>> = {
  unreadable: 'breaks the file',
  not_issued: 'issuing refuses the file',
  none: 'harmless',
};

export function printInspection(name: string, inspection: Inspection, terminal: Terminal): void {
  const { bytes, sha256, samples, chunks, chunkCount, findings, mendable, credential } = inspection;
  const line = (label: string, text: string): void =>
    terminal.print(`${label.padEnd(LABEL_WIDTH)}${printable(text)}`);
  line('file', name);
  line('container', containerText(inspection));
  line('bytes', String(bytes));
  line('sha256', sha256);
  line(
    'samples',
    'sha256' in samples
      ? samples.sha256
      : `no digest: ${samples.reason}: ${SAMPLES_REASON_MEANINGS[samples.reason]}`,
  );
  if (chunks.length > 0) {
    terminal.print('');
    for (const row of table(
      ['offset', 'size', 'chunk'],
      chunks.map(({ id, offset, size }) => [String(offset), String(size), printable(id)]),
      (cell) => cell,
    ))
      terminal.print(row);
    if (chunkCount > chunks.length) terminal.print(`and ${chunkCount - chunks.length} more chunks`);
  }
  if (credential !== undefined) {
    terminal.print('');
    printCredential(credential, line);
  }
  if (findings.length > 0) {
    terminal.print('');
    for (const finding of findings) line('finding', `${findingText(finding)}: ${EFFECTS[finding.effect]}`);
    if (mendable) line('', '`takemark operator issue --mend` repairs the file');
  }
  terminal.print('');
  line('verify', objectionText(inspection));
}

const LABEL_WIDTH = 13;

function containerText({ container, format, frames }: Inspection): string {
  if (format === undefined) return container;
  const { encoding, channels, sampleRate, bitsPerSample } = format;
  const parts = [container, encoding, `${channels} ch`, `${sampleRate} Hz`, `${bitsPerSample} bit`];
  return [...parts, ...(frames === undefined ? [] : [`${frames} frames`])].join(', ');
}

function printCredential(credential: InspectedCredential, line: (label: string, text: string) => void): void {
  const { kind, offset, length, statement, signer, algorithm, report } = credential;
  line('credential', `${KINDS[kind]}, ${length} bytes at byte ${offset}`);
  if (statement !== undefined && 'proofId' in statement) {
    line('proof', statement.proofId);
    line('issued', `${formatTime(statement.createdAt)} by ${statement.issuer}`);
    if (statement.evidenceSha256 !== null) line('evidence', statement.evidenceSha256);
  } else if (statement !== undefined) {
    line('sealed', `${formatTime(statement.sealedAt)} by ${statement.device}`);
  }
  if (signer !== undefined || algorithm !== undefined)
    line('signer', [signer ?? 'without a name', algorithm].filter((part) => part !== undefined).join(', '));
  if (statement !== undefined) line('certificate', statement.kid);
  if (report?.generator !== undefined) line('generator', report.generator);
  for (const reason of report?.reasons ?? []) line('', `${reason}: ${REPORT_REASON_MEANINGS[reason]}`);
  line('digest', credential.credentialSha256);
  if (credential.boundAudioSha256 !== undefined) line('bound audio', credential.boundAudioSha256);
  if (credential.originalSha256 !== undefined) line('original', credential.originalSha256);
}

/** Returns a finding with what was found and expected, if both are known. */
export function findingText({ code: slug, offset, found, expected }: InspectedFinding): string {
  return found === undefined || expected === undefined
    ? `${slug} (byte ${offset})`
    : describeFinding({ slug, offset, found, expected });
}

/** Returns why a verify would refuse a file, or that only the service can answer. */
export function objectionText({ objection }: Inspection): string {
  if (objection === undefined) return 'nothing in the file is refused; the service decides by its registry';
  const { verdict, reasons } = objection;
  return `${verdict}: ${reasons.map((reason) => `${reason}: ${DECISION_REASON_MEANINGS[reason]}`).join(' ')}`;
}
