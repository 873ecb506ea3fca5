import { formatTime, printable, type Terminal } from '../terminal.js';
import { verdictText } from '../verdict-texts.js';
import { asksForReview, type FileResult, isAmbiguous, isOfUnknownFormat } from './file-result.js';

export const FORMATS = ['table', 'jsonl', 'csv'] as const;
export type Format = (typeof FORMATS)[number];

/** Writes results as they arrive. No format may depend on later results. */
export interface ResultWriter {
  begin(): void;
  write(entry: FileResult): void;
}

export function resultWriter(format: Format, terminal: Terminal): ResultWriter {
  switch (format) {
    case 'table':
      return {
        begin: () => tableHead(terminal),
        write: (entry) => terminal.print(tableLine(entry, terminal)),
      };
    case 'jsonl':
      return { begin: () => undefined, write: (entry) => terminal.printJson(entry) };
    case 'csv':
      return {
        begin: () => terminal.printRaw(csvLine(CSV_COLUMNS)),
        write: (entry) => terminal.printRaw(csvLine(csvCells(entry))),
      };
  }
}

const VERDICT_WIDTH = 16;
const PROOF_WIDTH = 30;
/** The least width of a file, so that the reasons of most files line up. */
const FILE_WIDTH = 24;

function tableHead(terminal: Terminal): void {
  const head = [
    'verdict'.padEnd(VERDICT_WIDTH),
    'proof'.padEnd(PROOF_WIDTH),
    'file'.padEnd(FILE_WIDTH),
    'reason',
  ].join('  ');
  terminal.print(terminal.style(head, 'bold'));
  const widths = [VERDICT_WIDTH, PROOF_WIDTH, FILE_WIDTH, 'reason'.length];
  terminal.print(widths.map((width) => '─'.repeat(width)).join('  '));
}

/** Puts text of unbounded length last, so that fixed column widths work without knowing every entry. */
function tableLine(entry: FileResult, terminal: Terminal): string {
  const { mark, title, colour, proof, remark } = tableCells(entry);
  const verdict = terminal.style(printable(`${mark} ${title}`).padEnd(VERDICT_WIDTH), colour);
  const file = printable(entry.sidecar === undefined ? entry.file : `${entry.file} + sidecar`);
  return [
    verdict,
    printable(proof).padEnd(PROOF_WIDTH),
    ...(remark === '' ? [file] : [file.padEnd(FILE_WIDTH), terminal.style(printable(remark), 'dim')]),
  ].join('  ');
}

function tableCells(entry: FileResult) {
  if (entry.outcome === 'failed')
    return {
      mark: '!',
      title: isAmbiguous(entry) ? 'AMBIGUOUS' : 'FAILED',
      colour: 'yellow',
      proof: '-',
      remark: entry.error.message,
    } as const;
  const { verdict, proofId = '-', decision } = entry.result;
  const good = entry.outcome === 'good';
  if (asksForReview(entry.result))
    return {
      mark: '?',
      title: 'NEEDS REVIEW',
      colour: 'yellow',
      proof: proofId,
      remark: 'the credential is valid',
    } as const;
  return {
    mark: good ? '✔' : '✘',
    title: verdictText(verdict).title,
    colour: good ? 'green' : 'red',
    proof: proofId,
    remark: good
      ? isOfUnknownFormat(entry.result)
        ? 'in a format that the service does not know'
        : ''
      : (decision?.reasons[0] ?? ''),
  } as const;
}

const CSV_COLUMNS = [
  'file',
  'sidecar',
  'outcome',
  'verdict',
  'status',
  'proof_id',
  'issued_at',
  'reason',
  'recommended_action',
  'sha256',
  'request_id',
  'error',
];

function csvCells(entry: FileResult): readonly string[] {
  const { file, sidecar = '', outcome } = entry;
  if (entry.outcome === 'failed') {
    const { reason, code, requestId = '', message } = entry.error;
    return [file, sidecar, outcome, '', '', '', '', reason ?? code ?? '', '', '', requestId, message];
  }
  const { verdict, proofId = '', issuedAt, decision, requestId = '' } = entry.result;
  // A promised member of a response may be absent. An empty cell is better than the end of the run.
  const audio = entry.result.audio as { readonly sha256?: string } | undefined;
  return [
    file,
    sidecar,
    outcome,
    verdict,
    decision?.status ?? '',
    proofId,
    issuedAt === undefined ? '' : formatTime(issuedAt),
    decision?.reasons[0] ?? '',
    decision?.recommendedAction ?? '',
    audio?.sha256 ?? '',
    requestId,
    '',
  ];
}

/** Formats a line as in RFC 4180 with every cell quoted, so that programs that expect `;` can read it too. */
export function csvLine(cells: readonly string[]): string {
  return `${cells.map((cell) => `"${harmless(cell).replaceAll('"', '""')}"`).join(',')}\r\n`;
}

/**
 * Escapes a cell that a spreadsheet would read as a formula, quoted or not. File names come from other people
 * (OWASP, CSV injection). The apostrophe turns the cell into text. Only such cells get an apostrophe, so that
 * it can be removed again.
 */
function harmless(cell: string): string {
  return `${/^[\s'"]*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(cell) ? "'" : ''}${printable(cell)}`;
}
