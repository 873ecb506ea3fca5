import { readFile, stat } from 'node:fs/promises';
import { TakemarkError } from '../../client/errors.js';
import type { Client } from '../../client/index.js';
import { IDENTIFIER_PATTERN } from '../../domain/identifiers.js';
import { renderReportPage } from '../../evidence/page/render-report-page.js';
import { UnreadableReport } from '../../evidence/parse-report.js';
import {
  PROJECTION_FORMATS,
  type ProjectionFormat,
  projectReport,
} from '../../evidence/projections/project-report.js';
import { type Context, defineCommand, EXIT, RuntimeError, UsageError } from '../command.js';
import { planOutput, writeOutput } from '../output-file.js';
import { reportInput } from '../report-subject.js';
import { printReport } from '../report-text.js';
import { PARTNER_DETAILS, withPartner } from './partner-account.js';

/** Bytes of a file with a result; reports are far smaller. */
const MAX_FILE_BYTES = 16_777_216;

const FORMATS = ['text', 'json', ...(Object.keys(PROJECTION_FORMATS) as ProjectionFormat[])] as const;

export const report = defineCommand({
  name: 'report',
  service: 'partner',
  summary: 'Show the evidence report of a proof: on the terminal, as a page, or for a distributor',
  details: [
    'Takes the id of a proof, or a file: the result of `takemark verify --json`, a proof, a record,',
    'or a report alone. A proof that is not yours is read from its public record.',
    '',
    '--html writes one page that holds all it needs, and can be read without a network.',
    '--format ddex-432, spotify and apple put what creators declared into the words that distributors',
    'exchange; what was not declared is unknown there, with the reason.',
    '',
    ...PARTNER_DETAILS,
  ],
  operands: ['<proof>'],
  options: {
    html: { value: 'file', help: 'write the report as a page' },
    force: { help: 'replace the page that exists' },
    format: { value: 'format', choices: FORMATS, help: 'text, json, ddex-432, spotify or apple (text)' },
    'from-record': { help: "read the proof's record, even where the proof is yours" },
    json: { help: 'the same as --format json: the report as one line' },
  },
  async run([operand], options, context) {
    const { terminal } = context;
    const { html: path, force, fromRecord, json, format = json ? 'json' : undefined } = options;
    if (json && format !== 'json') throw new UsageError('--json is --format json');
    const isFile = await isThere(operand);
    if (isFile && fromRecord) throw new UsageError('--from-record is for the id of a proof');
    const output = path === undefined ? undefined : await planOutput(path, force, isFile ? [operand] : []);
    const input = readInput(
      isFile ? await readResult(operand) : await fetchProof(operand, fromRecord, context),
      operand,
    );
    if (output !== undefined) {
      await writeOutput(output, [Buffer.from(renderReportPage(input))]);
      terminal.note(`wrote ${output.path}`);
    }
    if (format === 'text' || (format === undefined && output === undefined)) printReport(input, terminal);
    else if (format !== undefined) {
      if (input.report === undefined) throw new RuntimeError('there is no evidence report');
      terminal.printJson(format === 'json' ? input.report : projectReport(input.report, format));
    }
    return EXIT.good;
  },
});

function readInput(value: unknown, name: string): ReturnType<typeof reportInput> {
  try {
    return reportInput(value);
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
  if (size > MAX_FILE_BYTES) throw new RuntimeError(`${path} is larger than any result`);
  const text = await readFile(path, 'utf8');
  try {
    return JSON.parse(text);
  } catch {
    throw new RuntimeError(`${path} is not one value of JSON`);
  }
}

async function fetchProof(proofId: string, fromRecord: boolean, context: Context): Promise<unknown> {
  if (!IDENTIFIER_PATTERN.test(proofId))
    throw new UsageError(`${proofId} is neither a file nor the id of a proof`);
  const { signal } = context;
  return withPartner(context, async (client: Client): Promise<unknown> => {
    if (fromRecord) return client.readRecord(proofId, { signal });
    return client.readProof(proofId, { signal }).catch((error: unknown) => {
      // A proof of somebody else is not there for this partner, and its record is.
      if (error instanceof TakemarkError && error.status === 404)
        return client.readRecord(proofId, { signal });
      throw error;
    });
  });
}
