import { readFile, stat } from 'node:fs/promises';
import { isLoopback, parseBase } from '../../client/connection.js';
import { TakemarkError } from '../../client/errors.js';
import type { Client } from '../../client/index.js';
import { IDENTIFIER_PATTERN } from '../../core/domain/identifiers.js';
import { renderReportPage } from '../../witness/page/render-report-page.js';
import {
  PROJECTION_FORMATS,
  type ProjectionFormat,
  projectReport,
} from '../../witness/projections/project-report.js';
import { UnreadableReport } from '../../witness/report/parse-report.js';
import { type Context, defineCommand, EXIT, RuntimeError, UsageError } from '../command.js';
import { planOutput, writeOutput } from '../output-file.js';
import { reportInput } from '../report-subject.js';
import { printReport } from '../report-text.js';
import { withPartner } from './partner-account.js';

/** The size limit of a result file in bytes. Reports are far smaller. */
const MAX_FILE_BYTES = 16_777_216;

const FORMATS = ['text', 'json', ...(Object.keys(PROJECTION_FORMATS) as ProjectionFormat[])] as const;

export const report = defineCommand({
  name: 'report',
  service: 'partner',
  summary: 'Show the evidence report of a proof as text, as an HTML page or for a distributor',
  details: [
    'The operand is a proof id or a file: the output of `takemark verify --json`, a line of its --format jsonl,',
    'a proof, a record or a report. For a proof of another partner, the command shows the evidence of the',
    'public record.',
    '',
    '--html writes one self-contained page that can be read offline. It names the address of the service.',
    'For a file, this is the address in TAKEMARK_URL or --url, unless it is on this machine.',
    '',
    '--format ddex-432, spotify and apple translate the declarations of creators into the terms of',
    'distributors. A point that no creator declared is shown as unknown, with the reason.',
  ],
  operands: ['<proof>'],
  options: {
    html: { value: 'file', help: 'write the report to this file as an HTML page' },
    force: { help: 'replace an existing page' },
    format: { value: 'format', choices: FORMATS, help: 'output format (text)' },
    'from-record': { help: 'read the public record, even if the proof is yours' },
    json: { help: 'same as --format json: print the report as one line' },
  },
  async run([operand], options, context) {
    const { terminal } = context;
    const { html: path, force, fromRecord, json, format = json ? 'json' : undefined } = options;
    if (json && format !== 'json') throw new UsageError('--json means --format json; give one of them');
    const isFile = await isThere(operand);
    if (isFile && fromRecord) throw new UsageError('--from-record needs a proof id, not a file');
    const output = path === undefined ? undefined : await planOutput(path, force, isFile ? [operand] : []);
    const service = parseBase(context.config.url);
    const input = readInput(
      isFile ? await readResult(operand) : await fetchProof(operand, fromRecord, context),
      operand,
      // The default address is on this machine, so a file need not come from there.
      isFile && isLoopback(service) ? undefined : service.href.replace(/\/$/, ''),
    );
    if (output !== undefined) {
      await writeOutput(output, [Buffer.from(renderReportPage(input))]);
      terminal.note(`wrote ${output.path}`);
    }
    if (format === 'text' || (format === undefined && output === undefined)) printReport(input, terminal);
    else if (format !== undefined) {
      if (input.report === undefined) throw new RuntimeError('the proof has no evidence report');
      terminal.printJson(format === 'json' ? input.report : projectReport(input.report, format));
    }
    return EXIT.good;
  },
});

function readInput(
  value: unknown,
  name: string,
  service: string | undefined,
): ReturnType<typeof reportInput> {
  try {
    return reportInput(value, service);
  } catch (error) {
    if (error instanceof UnreadableReport) throw new RuntimeError(`${name}: ${error.message}`);
    throw error;
  }
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    (info) => info.isFile(),
    () => false,
  );
}

async function readResult(path: string): Promise<unknown> {
  const { size } = await stat(path);
  if (size > MAX_FILE_BYTES)
    throw new RuntimeError(`${path} is larger than ${MAX_FILE_BYTES} bytes, so it is not a result`);
  const text = await readFile(path, 'utf8');
  try {
    return JSON.parse(text);
  } catch {
    throw new RuntimeError(`${path} does not hold a single JSON value`);
  }
}

async function fetchProof(proofId: string, fromRecord: boolean, context: Context): Promise<unknown> {
  if (!IDENTIFIER_PATTERN.test(proofId)) throw new UsageError(`${proofId} is neither a file nor a proof id`);
  const { signal } = context;
  return withPartner(context, async (client: Client): Promise<unknown> => {
    if (fromRecord) return client.readRecord(proofId, { signal });
    return client.readProof(proofId, { signal }).catch((error: unknown) => {
      // Another partner's proof is a 404, but its public record can be read.
      if (error instanceof TakemarkError && error.status === 404)
        return client.readRecord(proofId, { signal });
      throw error;
    });
  });
}
