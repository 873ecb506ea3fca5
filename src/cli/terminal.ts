import type { Writable } from 'node:stream';

/**
 * A stream that may be a terminal. `hasColors` is Node's method, which honours NO_COLOR and dumb terminals.
 */
export interface Output extends Pick<Writable, 'write'> {
  readonly isTTY?: boolean;
  readonly columns?: number;
  hasColors?(): boolean;
}

const STYLES = { bold: '1', dim: '2', red: '31', green: '32', yellow: '33', cyan: '36' } as const;
export type Style = keyof typeof STYLES;

/** Writes results to `out` and everything else to `err`, so that a pipe receives only results. */
export class Terminal {
  readonly #out: Output;
  readonly #err: Output;

  constructor(out: Output, err: Output) {
    this.#out = out;
    this.#err = err;
  }

  print(text: string): void {
    this.#out.write(`${text}\n`);
  }

  /** Prints a value as one line of JSON, for scripts. */
  printJson(value: unknown): void {
    this.#out.write(`${jsonLine(value)}\n`);
  }

  /** Writes result text unchanged. */
  printRaw(text: string): void {
    this.#out.write(text);
  }

  note(text: string): void {
    this.#err.write(`${text}\n`);
  }

  /** Styles text for `out`. The text stays plain if `out` is not a colour terminal. */
  style(text: string, ...styles: readonly Style[]): string {
    if (this.#out.isTTY !== true || this.#out.hasColors?.() !== true) return text;
    return `\u001b[${styles.map((style) => STYLES[style]).join(';')}m${text}\u001b[0m`;
  }

  /** Returns a progress bar on `err`. It is visible only if `err` is a terminal. */
  progressBar(label: string): ProgressBar {
    return new ProgressBar(this.#err, label);
  }
}

const REDRAW_MS = 80;

export class ProgressBar {
  readonly #stream: Output;
  readonly #label: string;
  readonly #startedAt = performance.now();
  #drawnAt = -Infinity;
  #drawn = false;

  constructor(stream: Output, label: string) {
    this.#stream = stream;
    this.#label = printable(label);
  }

  /** True if the bar is on a terminal. */
  get visible(): boolean {
    return this.#stream.isTTY === true;
  }

  /**
   * Draws the bar for the bytes done, out of a total if known.
   * @param facts `label` replaces the bar's own label. `workedBytes` is the basis of the rate, if some bytes
   * were done without work
   */
  update(
    done: number,
    total: number | undefined,
    {
      label = this.#label,
      workedBytes = done,
    }: { readonly label?: string; readonly workedBytes?: number } = {},
  ): void {
    if (!this.visible) return;
    const now = performance.now();
    if (now - this.#drawnAt < REDRAW_MS && done !== total) return;
    this.#drawnAt = now;
    this.#drawn = true;
    const bytesPerSecond = workedBytes / Math.max(0.05, (now - this.#startedAt) / 1000);
    const rate = `${formatBytes(bytesPerSecond)}/s`;
    const width = (this.#stream.columns ?? 80) - 1;
    if (total === undefined || total === 0) {
      this.#stream.write(`\r\u001b[2K${`${label}  ${formatBytes(done)}  ${rate}`.slice(0, width)}`);
      return;
    }
    const left =
      bytesPerSecond > 0 && done < total ? `  ${formatDuration((total - done) / bytesPerSecond)} left` : '';
    this.#stream.write(
      `\r\u001b[2K${`${label}  ${bar(Math.min(1, done / total))}  ${formatBytes(done)} of ${formatBytes(total)}  ${rate}${left}`.slice(0, width)}`,
    );
  }

  /** Removes the bar before another line is printed. The next update draws it again immediately. */
  clear(): void {
    if (this.#drawn) this.#drawnAt = -Infinity;
    this.end();
  }

  /** Removes the bar, so that only the result stays visible. */
  end(): void {
    if (this.#drawn) this.#stream.write('\r\u001b[2K');
    this.#drawn = false;
  }
}

function bar(share: number): string {
  const cells = 24;
  const filled = Math.min(cells, Math.round(share * cells));
  return `${'█'.repeat(filled)}${'░'.repeat(cells - filled)} ${String(Math.floor(share * 100)).padStart(3)}%`;
}

export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${Math.round(bytes)} B`;
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(1)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** Formats a duration in seconds, rounded up, as `0:07`, `12:34` or `3:00:00`. */
export function formatDuration(seconds: number): string {
  const whole = Math.ceil(seconds);
  const [hours, minutes, rest] = [
    Math.floor(whole / 3600),
    Math.floor(whole / 60) % 60,
    String(whole % 60).padStart(2, '0'),
  ];
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}:${rest}` : `${minutes}:${rest}`;
}

/**
 * Formats unix seconds as `2026-01-31T12:00:00Z` (ISO 8601, UTC). Seconds outside the date range stay a
 * number.
 */
export function formatTime(seconds: number): string {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? String(seconds) : `${date.toISOString().slice(0, -5)}Z`;
}

/**
 * The characters that control a terminal, change the text direction or are invisible: controls, format
 * characters, lone surrogates, line and paragraph separators, and default-ignorable characters (Unicode 16,
 * general categories and Default_Ignorable_Code_Point).
 */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * Makes text from other people safe to print, such as names of files, devices and issuers. Each character of
 * `UNSEEN` becomes `\u{hex}`. The backslash of a literal `\u{` is escaped too, so that decoding every
 * `\u{hex}` restores the text.
 */
export function printable(text: string): string {
  return text
    .replace(/\\(?=u\{)/g, '\\u{5c}')
    .replace(UNSEEN, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
}

/**
 * Returns a line of JSON with every character of `UNSEEN` escaped by its UTF-16 units (RFC 8259, section 7).
 */
function jsonLine(value: unknown): string {
  return JSON.stringify(value).replace(UNSEEN, (character) =>
    Array.from(
      { length: character.length },
      (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
}

/**
 * Returns the lines of a table with a rule under its head. `style` gets the padded cell, so that colours do
 * not shift columns.
 */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  style: (cell: string, row: number, column: number) => string,
): string[] {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)),
  );
  const line = (cells: readonly string[], row: number): string =>
    cells
      .map((cell, column) => style(cell.padEnd(widths[column] ?? 0), row, column))
      .join('  ')
      .trimEnd();
  return [
    line(head, -1),
    widths.map((width) => '─'.repeat(width)).join('  '),
    ...rows.map((cells, row) => line(cells, row)),
  ];
}
