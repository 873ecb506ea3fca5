import { printable, type Terminal } from '../terminal.js';
import { verdictWords } from '../verdict-words.js';
import type { Row } from './row.js';

export const FORMATS = ['table', 'jsonl', 'csv'] as const;
export type Format = (typeof FORMATS)[number];

/** Rows are written as they come, so every format is one that needs no look at the rows to follow. */
export interface RowWriter {
  begin(): void;
  row(row: Row): void;
}

export function rowWriter(format: Format, terminal: Terminal): RowWriter {
  switch (format) {
    case 'table':
      return { begin: () => tableHead(terminal), row: (row) => terminal.print(tableLine(row, terminal)) };
    case 'jsonl':
      return { begin: () => undefined, row: (row) => terminal.printJson(row) };
    case 'csv':
      return {
        begin: () => terminal.printRaw(csvLine(CSV_COLUMNS)),
        row: (row) => terminal.printRaw(csvLine(csvCells(row))),
      };
  }
}

const VERDICT_WIDTH = 16;
const PROOF_WIDTH = 30;

function tableHead(terminal: Terminal): void {
  const head = ['verdict'.padEnd(VERDICT_WIDTH), 'proof'.padEnd(PROOF_WIDTH), 'file'].join('  ');
  terminal.print(terminal.style(head, 'bold'));
  terminal.print(`${'─'.repeat(VERDICT_WIDTH)}  ${'─'.repeat(PROOF_WIDTH)}  ${'─'.repeat(24)}`);
}

/** What has no bound stands last, so that columns of fixed width hold without knowing every row. */
function tableLine(row: Row, terminal: Terminal): string {
  const { mark, title, colour, proof, remark } = tableCells(row);
  const verdict = terminal.style(printable(`${mark} ${title}`).padEnd(VERDICT_WIDTH), colour);
  const file = printable(row.sidecar === undefined ? row.file : `${row.file} + sidecar`);
  return [
    verdict,
    printable(proof).padEnd(PROOF_WIDTH),
    file,
    ...(remark === '' ? [] : [terminal.style(printable(remark), 'dim')]),
  ].join('  ');
}

function tableCells(row: Row) {
  if (row.outcome === 'failed')
    return { mark: '!', title: 'FAILED', colour: 'yellow', proof: '-', remark: row.error.message } as const;
  const { verdict, proofId = '-', decision } = row.result;
  const good = row.outcome === 'good';
  return {
    mark: good ? '✔' : '✘',
    title: verdictWords(verdict).title,
    colour: good ? 'green' : 'red',
    proof: proofId,
    remark: good ? '' : (decision?.reasons[0] ?? ''),
  } as const;
}

const CSV_COLUMNS = [
  'file',
  'sidecar',
  'outcome',
  'verdict',
  'proof_id',
  'issued_at',
  'reason',
  'recommended_action',
  'sha256',
  'request_id',
  'error',
];

function csvCells(row: Row): readonly string[] {
  const { file, sidecar = '', outcome } = row;
  if (row.outcome === 'failed') {
    const { reason, code, requestId = '', message } = row.error;
    return [file, sidecar, outcome, '', '', '', reason ?? code ?? '', '', '', requestId, message];
  }
  const { verdict, proofId = '', issuedAt, decision, requestId = '' } = row.result;
  // Promised, but another's to keep: a cell that stays empty is better than a run that ends.
  const audio = row.result.audio as { readonly sha256?: string } | undefined;
  return [
    file,
    sidecar,
    outcome,
    verdict,
    proofId,
    issuedAt === undefined ? '' : String(issuedAt),
    decision?.reasons[0] ?? '',
    decision?.recommendedAction ?? '',
    audio?.sha256 ?? '',
    requestId,
    '',
  ];
}

/** RFC 4180, with every cell quoted: programs that take `;` for the separator read it too. */
export function csvLine(cells: readonly string[]): string {
  return `${cells.map((cell) => `"${harmless(cell).replaceAll('"', '""')}"`).join(',')}\r\n`;
}

/**
 * A spreadsheet takes a cell that begins like this for a formula, quoted or not, and names of files are other
 * people's text (OWASP, CSV injection). The apostrophe makes it text. Only a cell that begins so gets one, so
 * that it can be taken off again.
 */
function harmless(cell: string): string {
  return `${/^[\s'"]*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(cell) ? "'" : ''}${printable(cell)}`;
}
