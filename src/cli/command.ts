import { parseArgs } from 'node:util';
import type { Config } from '../config.js';
import type { Sealer } from './sealer.js';
import type { Terminal } from './terminal.js';

/** `good` is for a good verdict, or a command that did its work. */
export const EXIT = { good: 0, notGood: 1, usage: 2, trouble: 3, interrupted: 130 } as const;

/** What the command line needs to know of its environment. */
export type ClientConfig = Config['client'] & Pick<Config, 'dataDirectory'>;

/** A process in the foreground. */
export interface LongRunning {
  /** For the person who started it. */
  readonly words: string;
  stop(): Promise<void>;
}

export interface Cluster {
  /**
   * Brings the store's schema and the bus's topics up to date; undefined for the one that is not configured.
   * @returns names of what was new
   */
  migrate(): Promise<{
    readonly applied?: readonly string[];
    readonly topics?: readonly string[];
    readonly rows?: { readonly authenticated: number; readonly damaged: number };
  }>;
  /** The text of a new bundle of secrets. */
  makeSecrets(): Promise<string>;
  /** The text of the bundle after a step. */
  rotateSecrets(
    bundle: { readonly text: string; readonly name: string },
    rotation: {
      readonly step: 'add' | 'use' | 'drop';
      readonly early: boolean;
      readonly purposes: readonly string[] | undefined;
    },
  ): Promise<string>;
  /** @returns how many erasures of the bus were taken, and how many messages of it never can be */
  replayErasures(): Promise<{ readonly taken: number; readonly left: number }>;
  /** PEM of a request for a new signing certificate. */
  requestLeaf(): Promise<string>;
  /** @param pem the leaf, then its authority. Times in unix seconds */
  installLeaf(
    pem: string,
  ): Promise<{ readonly kid: string; readonly notAfter: number; readonly former?: string }>;
  /** @returns PEM of the new authority */
  initAuthority(directory: string): Promise<string>;
  issueLeaf(
    directory: string,
    request: string,
    days: number,
  ): Promise<{
    readonly pem: string;
    readonly kid: string;
    readonly algorithm: string;
    readonly subject: string;
    readonly notBefore: number;
    readonly notAfter: number;
  }>;
  serve(): Promise<LongRunning>;
  consume(): Promise<LongRunning>;
}

/** What a command is given of the world. */
export interface Surroundings {
  readonly terminal: Terminal;
  readonly config: ClientConfig;
  /** Of the package. */
  readonly version: string;
  /** Aborted when the user interrupts. */
  readonly signal: AbortSignal;
  /** Opens the device in a directory, making its key on first use. */
  readonly openSealer: (directory: string) => Promise<Sealer>;
  /** What is done with the service's own configuration, not over its listeners. */
  readonly cluster: Cluster;
}

export interface OptionSpec {
  /** Name of the value in the help; absent for a flag. */
  readonly value?: string;
  readonly required?: boolean;
  readonly help: string;
}

export interface Command {
  /** As typed: `operator key create`. */
  readonly name: string;
  readonly summary: string;
  /** Lines below the usage line. */
  readonly details?: readonly string[];
  /** Names of what stands without a dash; all of them are required. */
  readonly operands: readonly string[];
  /** Names of what may follow them. */
  readonly optionalOperands?: readonly string[];
  /** Whether the last operand may be given many times. */
  readonly many?: boolean;
  readonly options: Readonly<Record<string, OptionSpec>>;
  /** @returns the exit code */
  run(given: Arguments, surroundings: Surroundings): Promise<number>;
}

/** Wrong use of the command line: exit code 2. */
export class UsageError extends Error {}

/** Trouble with files or the service, in words for the user: exit code 3. */
export class TroubleError extends Error {}

/** What was typed behind a command's name, after it was checked against the command. */
export class Arguments {
  readonly #names: readonly string[];
  /** In their order; at least as many as there are names. */
  readonly #operands: readonly string[];
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(
    names: readonly string[],
    operands: readonly string[],
    values: Readonly<Record<string, unknown>>,
  ) {
    this.#names = names;
    this.#operands = operands;
    this.#values = values;
  }

  operand(name: string): string {
    const value = this.#operands[this.#names.indexOf(name)];
    if (value === undefined) throw new TypeError(`the command has no operand ${name}`);
    return value;
  }

  optionalOperand(name: string): string | undefined {
    return this.#operands[this.#names.indexOf(name)];
  }

  /** The last operand, as often as it was given. */
  operandsFrom(name: string): readonly string[] {
    return this.#operands.slice(this.#names.indexOf(name));
  }

  flag(name: string): boolean {
    return this.#values[name] === true;
  }

  text(name: string): string | undefined {
    const value = this.#values[name];
    return typeof value === 'string' ? value : undefined;
  }

  requiredText(name: string): string {
    const value = this.text(name);
    if (value === undefined) throw new UsageError(`--${name} is missing`);
    return value;
  }

  /** A whole number within bounds, as typed. @throws UsageError */
  count(name: string, { min, max }: { readonly min: number; readonly max: number }): number | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    const count = /^\d{1,15}$/.test(value) ? Number(value) : NaN;
    if (!(count >= min && count <= max))
      throw new UsageError(`--${name} must be a whole number from ${min} to ${max}`);
    return count;
  }

  /** One of some words. @throws UsageError */
  choice<Word extends string>(name: string, words: readonly Word[]): Word | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    const word = words.find((candidate) => candidate === value);
    if (word === undefined) throw new UsageError(`--${name} must be one of ${words.join(', ')}`);
    return word;
  }
}

/** Options of every command. */
const COMMON_OPTIONS: Readonly<Record<string, OptionSpec>> = {
  'allow-plain-http': { help: 'send secrets over http to another machine too' },
};

/** @throws UsageError */
export function parseArguments(command: Command, words: readonly string[]): Arguments {
  const options: Record<string, { type: 'string' | 'boolean' }> = {};
  for (const name of Object.keys(COMMON_OPTIONS)) options[name] = { type: 'boolean' };
  for (const [name, spec] of Object.entries(command.options))
    options[name] = { type: spec.value === undefined ? 'boolean' : 'string' };
  const { values, positionals } = parsed(words, options);
  for (const [name, spec] of Object.entries(command.options)) {
    if (spec.required === true && values[name] === undefined) throw new UsageError(`--${name} is missing`);
    if (values[name] === '') throw new UsageError(`--${name} is empty`);
  }
  const missing = command.operands[positionals.length];
  if (missing !== undefined) throw new UsageError(`<${missing}> is missing`);
  const names = [...command.operands, ...(command.optionalOperands ?? [])];
  const surplus = positionals[names.length];
  if (surplus !== undefined && command.many !== true) throw new UsageError(`unexpected '${surplus}'`);
  if (positionals.includes('')) throw new UsageError('an operand is empty');
  return new Arguments(names, positionals, values);
}

function parsed(
  words: readonly string[],
  options: Record<string, { type: 'string' | 'boolean' }>,
): { values: Readonly<Record<string, unknown>>; positionals: readonly string[] } {
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true, strict: true });
  } catch (error) {
    // Node explains how to pass what begins with a dash in further sentences; the first one names the
    // mistake.
    throw new UsageError(
      error instanceof Error ? (error.message.split(/\.\s|\n/)[0] ?? error.message) : String(error),
    );
  }
}

export function commandHelp(command: Command): string {
  const required = Object.entries(command.options).filter(([, spec]) => spec.required === true);
  const usage = [
    'takemark',
    command.name,
    ...command.operands.map((name) => `<${name}>`),
    ...(command.many === true ? ['...'] : []),
    ...(command.optionalOperands ?? []).map((name) => `[${name}]`),
    ...required.map(([name, spec]) => `--${name} <${spec.value ?? ''}>`),
    '[options]',
  ];
  const rows = [
    ...Object.entries({ ...command.options, ...COMMON_OPTIONS }).map(
      ([name, spec]) =>
        [`--${name}${spec.value === undefined ? '' : ` <${spec.value}>`}`, spec.help] as const,
    ),
    ['--help', 'this text'] as const,
  ];
  return [
    `${command.summary}.`,
    '',
    `Usage: ${usage.join(' ')}`,
    ...(command.details === undefined ? [] : ['', ...command.details]),
    '',
    'Options:',
    ...columns(rows),
    '',
  ].join('\n');
}

/** Two aligned columns, indented. */
export function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}
