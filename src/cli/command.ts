import type { Config } from '../config/config.js';
import type { ServerCheck } from '../domain/server-check.js';
import type { Sealer } from './sealer.js';
import type { Terminal } from './terminal.js';

/**
 * Exit codes; `good` is for a good verdict, or a command that did its work. `needsReview` is for a good verdict with
 * evidence that asks for a person's decision.
 */
export const EXIT = {
  good: 0,
  notGood: 1,
  usage: 2,
  runtimeError: 3,
  needsReview: 4,
  interrupted: 130,
} as const;

/** A listener of the service. */
export type Service = 'partner' | 'operator';

/** Environment of the command line, with the addresses that it speaks to. */
export type ClientConfig = Config['client'] &
  Pick<Config, 'dataDirectory'> & {
    /** File of the profiles. */
    readonly profilesFile: string;
    readonly url: string;
    readonly operatorUrl: string;
  };

/** A process in the foreground. */
export interface RunningProcess {
  /** Text for the person who started the process. */
  readonly banner: string;
  stop(): Promise<void>;
}

export interface Cluster {
  /**
   * Brings the store's schema and the bus's topics up to date; undefined for the one that is not configured.
   * @param options whether another topology may take the place of the one that was stated
   * @returns names of what was new
   */
  migrate(options: { readonly changeTopology: boolean }): Promise<{
    readonly applied?: readonly string[];
    readonly topics?: readonly string[];
    readonly rows?: { readonly authenticated: number; readonly damaged: number };
  }>;
  /** Looks at the servers, and changes nothing. */
  examineServers(): Promise<readonly ServerCheck[]>;
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
  /** Makes good what a backup forgot that was put back. */
  restore(): Promise<{
    readonly epoch: number;
    readonly erasures: number;
    readonly erasedAgain: number;
    readonly usage: number;
    readonly left: number;
    readonly seconds: number;
  }>;
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
  serve(): Promise<RunningProcess>;
  consume(): Promise<RunningProcess>;
}

/** The world of a command, as far as it is given to one. */
export interface Context {
  readonly terminal: Terminal;
  readonly config: ClientConfig;
  /** Version of the package. */
  readonly version: string;
  /** Aborted when the user interrupts. */
  readonly signal: AbortSignal;
  /** Opens the device in a directory, making its key on first use. */
  readonly openSealer: (directory: string) => Promise<Sealer>;
  /** A secret that is piped in, or typed without being shown. */
  readonly readSecret: (prompt: string) => Promise<string>;
  /** Operations with the service's own configuration, not over its listeners. */
  readonly cluster: Cluster;
}

/** Declaration of an option; without a value it is a flag. */
export interface OptionSpec {
  /**
   * Name of the value in the help. Shells complete a `file` and a `directory` by the paths that are there.
   */
  readonly value?: string;
  readonly required?: true;
  /** All that the value may be. */
  readonly choices?: readonly string[];
  /** Bounds of a value that is a whole number. */
  readonly range?: readonly [min: number, max: number];
  readonly help: string;
}

/** Name of an operand and how often it is given: `<once>`, `[at most once]`, `<at least once...>`. */
type OperandSpec = `<${string}>` | `[${string}]`;

/** Operands as they were typed, in the order of their declaration. */
type OperandsOf<Specs extends readonly OperandSpec[]> = {
  readonly [At in keyof Specs]: Specs[At] extends `<${string}...>`
    ? readonly string[]
    : Specs[At] extends `[${string}]`
      ? string | undefined
      : string;
};

type CamelCase<Name extends string> = Name extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name;
/** Name of an option as code has it: `sidecarOut` of `--sidecar-out`, `pairs` of `--no-pairs`. */
type MemberOf<Name> = Name extends `no-${infer Positive}`
  ? CamelCase<Positive>
  : Name extends string
    ? CamelCase<Name>
    : never;

type ValueOf<Spec> = Spec extends { readonly range: unknown }
  ? number
  : Spec extends { readonly choices: readonly (infer Choice)[] }
    ? Choice
    : string;

type Specs = Readonly<Record<string, OptionSpec>>;

/** Values of options: a flag is there always, another only where it was given or is required. */
type OptionsOf<Options extends Specs> = {
  readonly [Name in keyof Options as Options[Name] extends { readonly value: string }
    ? never
    : MemberOf<Name>]: boolean;
} & {
  readonly [Name in keyof Options as Options[Name] extends {
    readonly value: string;
    readonly required: true;
  }
    ? MemberOf<Name>
    : never]: ValueOf<Options[Name]>;
} & {
  readonly [Name in keyof Options as Options[Name] extends { readonly value: string }
    ? Options[Name] extends { readonly required: true }
      ? never
      : MemberOf<Name>
    : never]?: ValueOf<Options[Name]>;
};

interface CommandOf<Operands extends readonly OperandSpec[], Options extends Specs> {
  /** The words as typed: `operator key create`. */
  readonly name: string;
  /** The listener that the command speaks to, if any: it has the option that names its address. */
  readonly service?: Service;
  readonly summary: string;
  /** Lines of the help: an empty one ends a paragraph, one that begins with a space is kept as it is. */
  readonly details?: readonly string[];
  readonly operands: Operands;
  readonly options: Options;
  /** @returns the exit code */
  run(operands: OperandsOf<Operands>, options: OptionsOf<Options>, context: Context): Promise<number>;
}

/** A command as the parser knows it: what its `run` takes is what it declares, by `defineCommand`. */
export interface Command extends Omit<CommandOf<readonly OperandSpec[], Specs>, 'run'> {
  run(operands: readonly unknown[], options: object, context: Context): Promise<number>;
}

/** Commands of the command line, in the order of the help. */
export interface CommandSet {
  readonly commands: readonly Command[];
  /** Summaries of the words that only begin commands, such as `operator key`. */
  readonly groups: Readonly<Record<string, string>>;
}

/** Types a command's `run` by the operands and options that the command declares. */
export function defineCommand<const Operands extends readonly OperandSpec[], const Options extends Specs>(
  command: CommandOf<Operands, Options>,
): Command {
  return command as unknown as Command;
}

/** Wrong use of the command line: exit code 2. */
export class UsageError extends Error {}

/** Failure of files or of the service, in words for the user: exit code 3. */
export class RuntimeError extends Error {}
