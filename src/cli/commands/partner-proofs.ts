import type { ProofRecord } from '../../client/types.js';
import { defineCommand, EXIT, UsageError } from '../command.js';
import { planOutput, writeOutput } from '../output-file.js';
import { formatBytes, formatTime, printable, type Terminal } from '../terminal.js';
import { parseTime } from '../time-option.js';
import { partnerCall } from './call-command.js';
import { withPartner } from './partner-account.js';

const JSON_HELP = 'print the response as one line of JSON';

const listProofs = partnerCall({
  name: 'proofs list',
  summary: 'List your proofs, newest first',
  options: {
    'issued-after': { value: 'time', help: '2026-01-31, 2026-01-31T12:00:00Z, or unix seconds' },
    'issued-before': { value: 'time', help: 'a time in the same formats' },
  },
  json: 'print one line of JSON per proof',
  call(_operands, options, { signal }) {
    const issuedAfter =
      options.issuedAfter === undefined ? undefined : parseTime('--issued-after', options.issuedAfter);
    const issuedBefore =
      options.issuedBefore === undefined ? undefined : parseTime('--issued-before', options.issuedBefore);
    return (client) => client.listProofs({ issuedAfter, issuedBefore, signal });
  },
  columns: ({ proofId, issuedAt, carrier, song }) => [
    proofId,
    formatTime(issuedAt),
    carrier.padEnd(8),
    song.title,
  ],
  empty: 'no proofs',
});

const getProof = partnerCall({
  name: 'proofs get',
  summary: 'Show one of your proofs',
  details: ['`takemark report` shows the evidence report.'],
  operands: ['<proofId>'],
  json: JSON_HELP,
  call:
    ([proofId], _options, { signal }) =>
    (client) =>
      client.readProof(proofId, { signal }),
  print([proof], terminal) {
    const { proofId, song, issuer, issuedAt, carrier, boundAudioSha256, originalSha256 } = proof!;
    printFacts(terminal, [
      ['proof', proofId],
      ...songFacts(song),
      ['issuer', issuer],
      ['issued', formatTime(issuedAt)],
      ['carrier', carrier],
      ['bound', boundAudioSha256],
      ['original', originalSha256],
      ['report', proof!.evidenceReport === undefined ? 'none' : 'takemark report'],
    ]);
  },
});

const downloadAsset = defineCommand({
  name: 'proofs asset',
  service: 'partner',
  summary: 'Download the issued file of one of your proofs, or its sidecar',
  details: ['The file is written only if its bytes match the digest that the service sends.'],
  operands: ['<proofId>'],
  options: {
    out: { value: 'file', required: true, help: 'file to write' },
    part: { value: 'part', choices: ['audio', 'sidecar'], help: 'part to download (audio)' },
    force: { help: 'replace an existing file' },
    json: { help: 'print path, digest and length as one line of JSON' },
  },
  async run([proofId], { out, part, force, json }, context) {
    const { terminal, signal } = context;
    const output = await planOutput(out, force, []);
    return withPartner(context, async (client) => {
      const asset = await client.readAsset(proofId, { part, signal });
      let bytes = 0;
      try {
        await writeOutput(
          output,
          counted(asset.body, (length) => (bytes += length)),
        );
      } finally {
        asset.close();
      }
      const { sha256, mediaType } = asset;
      if (json) terminal.printJson({ proofId, out, bytes, sha256, mediaType });
      else
        terminal.note(
          printable(`wrote ${out}: ${formatBytes(bytes)}${sha256 === undefined ? '' : `, sha256 ${sha256}`}`),
        );
      return EXIT.good;
    });
  },
});

async function* counted(
  chunks: AsyncIterable<Uint8Array>,
  count: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    count(chunk.byteLength);
    yield chunk;
  }
}

const eraseProof = partnerCall({
  name: 'proofs erase',
  summary: 'Erase one of your proofs permanently: it can never be verified again',
  details: [
    'Name the proof twice, as operand and with --confirm, because an erasure cannot be undone.',
    'Repeating the command changes nothing.',
  ],
  operands: ['<proofId>'],
  options: { confirm: { value: 'proofId', required: true, help: 'the same proof id again' } },
  json: JSON_HELP,
  call([proofId], { confirm }, { signal }) {
    if (confirm !== proofId) throw new UsageError('--confirm and the operand name different proofs');
    return (client) => client.eraseProof(proofId, { signal });
  },
  columns: ({ proofId, outcome, erasedAt }) => [proofId, outcome, `first erased ${formatTime(erasedAt)}`],
});

const getRecord = partnerCall({
  name: 'records get',
  summary: 'Show the registry record of any proof, including proofs of other partners',
  details: ['A record does not show that a file matches the proof; use `takemark verify` for that.'],
  operands: ['<proofId>'],
  json: JSON_HELP,
  call:
    ([proofId], _options, { signal }) =>
    (client) =>
      client.readRecord(proofId, { signal }),
  print([record], terminal) {
    const { proofId, song, issuer, issuedAt, boundAudioSha256, delivery } = record!;
    printFacts(terminal, [
      ['proof', proofId],
      ...songFacts(song),
      ['issuer', issuer],
      ['issued', formatTime(issuedAt)],
      ['carrier', delivery.carrier],
      ['bound', boundAudioSha256],
      ['file', `${delivery.fileName}, ${delivery.mediaType}, ${formatBytes(delivery.bytes)}`],
      ['sha256', delivery.sha256],
    ]);
  },
});

export const PROOF_COMMANDS = [listProofs, getProof, downloadAsset, eraseProof, getRecord];

function songFacts({ title, declared = {} }: ProofRecord['song']): readonly [string, string | undefined][] {
  return [
    ['song', title],
    ['artist', declaredText(declared.artist)],
    ['release', declaredText(declared.release)],
    ['isrc', declaredText(declared.isrc)],
  ];
}

function declaredText(value: string | undefined): string | undefined {
  return value === undefined ? undefined : `${value} (declared by the issuer, not checked)`;
}

/** Prints one fact per line, with the names in a column. */
export function printFacts(
  terminal: Terminal,
  facts: readonly (readonly [string, string | undefined])[],
): void {
  for (const [name, value] of facts)
    if (value !== undefined) terminal.print(`${terminal.style(name.padEnd(10), 'dim')} ${printable(value)}`);
}
