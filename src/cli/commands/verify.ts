import { basename } from 'node:path';
import { createClient, type AudioSummary, type Verification } from '../../client/index.js';
import { EXIT, UsageError, type Command } from '../command.js';
import { formatBytes, formatTime, printable, type Terminal } from '../terminal.js';
import { verdictWords } from '../verdict-words.js';

export const verify: Command = {
  name: 'verify',
  summary: 'Verify a credentialed WAV/BWF, or audio with its sidecar',
  details: [
    'Uploads the file and says the verdict in plain words. The exit code is 0 for a good',
    'verdict alone, 1 for any other, 2 for wrong use, 3 where files or the service fail.',
    '',
    'TAKEMARK_API_KEY holds the key; TAKEMARK_URL the address (http://127.0.0.1:8080).',
  ],
  operands: ['file'],
  options: {
    sidecar: { value: 'file', help: 'the sidecar of a legacy pair' },
    json: { help: 'the result as one line of JSON' },
  },
  async run(given, { terminal, config, signal }) {
    const path = given.operand('file');
    if (config.apiKey === undefined) throw new UsageError('set TAKEMARK_API_KEY to a partner key');
    const client = createClient({ baseUrl: config.url, apiKey: config.apiKey });
    const bar = terminal.progressBar(basename(path));
    try {
      const result = await client.verifyFile(path, {
        sidecar: given.text('sidecar'),
        signal,
        onProgress: ({ sentBytes, totalBytes }) => bar.update(sentBytes, totalBytes),
      });
      bar.end();
      if (given.flag('json')) terminal.printJson(result);
      else explain(result, path, terminal);
      return result.accepted ? EXIT.good : EXIT.notGood;
    } finally {
      bar.end();
      client.close();
    }
  },
};

function explain(result: Verification, path: string, terminal: Terminal): void {
  const { title, meaning, advice } = verdictWords(result.verdict);
  const colour = result.accepted ? 'green' : result.verdict === 'local_seal' ? 'yellow' : 'red';
  terminal.print(`${terminal.style(`${result.accepted ? '✔' : '✘'} ${printable(title)}`, 'bold', colour)}  ${printable(basename(path))}`);
  terminal.print(`  ${meaning}`);
  terminal.print(`  ${advice}`);
  // What was promised may still be missing in an answer: a plain line is better than no verdict.
  const decision = result.decision as Verification['decision'] | undefined;
  const audio = result.audio as AudioSummary | undefined;
  const facts: [string, string | undefined][] = [
    ['proof', result.proofId],
    ['issued', result.issuedAt === undefined ? undefined : formatTime(result.issuedAt)],
    ['audio', audio === undefined ? undefined : audioWords(audio)],
    ['sha256', audio?.sha256],
    ['decision', decision === undefined ? undefined : `${decision.status}, ${decision.recommendedAction}`],
    ['reasons', decision?.reasons.join(', ')],
    ['signed by', result.embeddedCredential === undefined ? undefined : signerWords(result.embeddedCredential)],
    ['request', result.requestId],
  ];
  for (const [name, value] of facts) {
    if (value !== undefined && value !== '') terminal.print(`  ${terminal.style(name.padEnd(9), 'dim')} ${printable(value)}`);
  }
}

function signerWords({ issuer, trust, integrity }: NonNullable<Verification['embeddedCredential']>): string {
  return `${issuer ?? 'unknown'} (integrity ${integrity}, trust ${trust})`;
}

function audioWords(audio: AudioSummary): string {
  const parts = [audio.container.toUpperCase()];
  if (audio.sampleRate !== undefined) parts.push(`${audio.sampleRate / 1000} kHz`);
  if (audio.bitsPerSample !== undefined) parts.push(`${audio.bitsPerSample} bit`);
  if (audio.channels !== undefined) parts.push(audio.channels === 1 ? 'mono' : audio.channels === 2 ? 'stereo' : `${audio.channels} channels`);
  if (audio.durationSeconds !== undefined) {
    const seconds = Math.round(audio.durationSeconds);
    parts.push(`${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`);
  }
  return [...parts, formatBytes(audio.bytes)].join(', ');
}
