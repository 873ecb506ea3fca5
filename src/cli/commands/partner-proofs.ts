import type { ProofRecord } from '../../client/types.js';
import { defineCommand, EXIT, UsageError } from '../command.js';
import { planOutput, writeOutput } from '../output-file.js';
import { formatBytes, formatTime, printable, type Terminal } from '../terminal.js';
import { PARTNER_DETAILS, withPartner } from './partner-account.js';

const JSON_OPTION = { help: 'print the response as one line of JSON' };

export const getProof = defineCommand({
  name: 'proofs get',
  service: 'partner',
  summary: 'Show one of your proofs',
  details: ['`takemark report` shows the evidence report.', '', ...PARTNER_DETAILS],
  operands: ['<proofId>'],
  options: { json: JSON_OPTION },
  async run([proofId], { json }, context) {
    const { terminal, signal } = context;
    const proof = await withPartner(context, (client) => client.readProof(proofId, { signal }));
    if (json) terminal.printJson(proof);
    else
      printFacts(terminal, [
        ['proof', proof.proofId],
        ...songFacts(proof.song),
        ['issuer', proof.issuer],
        ['issued', formatTime(proof.issuedAt)],
        ['carrier', proof.carrier],
        ['bound', proof.boundAudioSha256],
        ['original', proof.originalSha256],
        ['report', proof.evidenceReport === undefined ? 'none' : 'takemark report'],
      ]);
    return EXIT.good;
  },
});

export const downloadAsset = defineCommand({
  name: 'proofs asset',
  service: 'partner',
  summary: 'Download the issued file of one of your proofs, or its sidecar',
  details: [
    'The file is written only if its bytes match the digest that the service sends.',
    '',
    ...PARTNER_DETAILS,
  ],
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

export const eraseProof = defineCommand({
  name: 'proofs erase',
  service: 'partner',
  summary: 'Erase one of your proofs permanently: it can never be verified again',
  details: [
    'Name the proof twice, as operand and with --confirm, because an erasure cannot be undone.',
    'Repeating the command changes nothing.',
    '',
    ...PARTNER_DETAILS,
  ],
  operands: ['<proofId>'],
  options: {
    confirm: { value: 'proofId', required: true, help: 'the same proof id again' },
    json: JSON_OPTION,
  },
  async run([proofId], { confirm, json }, context) {
    if (confirm !== proofId) throw new UsageError('--confirm and the operand name different proofs');
    const { terminal, signal } = context;
    const erased = await withPartner(context, (client) => client.eraseProof(proofId, { signal }));
    if (json) terminal.printJson(erased);
    else
      terminal.print(
        printable(`${erased.proofId}  ${erased.outcome}  first erased ${formatTime(erased.erasedAt)}`),
      );
    return EXIT.good;
  },
});

export const getRecord = defineCommand({
  name: 'records get',
  service: 'partner',
  summary: 'Show the registry record of any proof, including proofs of other partners',
  details: [
    'A record does not show that a file matches the proof; use `takemark verify` for that.',
    '',
    ...PARTNER_DETAILS,
  ],
  operands: ['<proofId>'],
  options: { json: JSON_OPTION },
  async run([proofId], { json }, context) {
    const { terminal, signal } = context;
    const record = await withPartner(context, (client) => client.readRecord(proofId, { signal }));
    const { song, issuer, issuedAt, boundAudioSha256, delivery } = record;
    if (json) terminal.printJson(record);
    else
      printFacts(terminal, [
        ['proof', record.proofId],
        ...songFacts(song),
        ['issuer', issuer],
        ['issued', formatTime(issuedAt)],
        ['carrier', delivery.carrier],
        ['bound', boundAudioSha256],
        ['file', `${delivery.fileName}, ${delivery.mediaType}, ${formatBytes(delivery.bytes)}`],
        ['sha256', delivery.sha256],
      ]);
    return EXIT.good;
  },
});

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
