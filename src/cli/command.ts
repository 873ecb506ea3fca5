import type { Config } from '../service/config/config.js';
import type { Cluster } from './cluster.js';
import type { FileKit } from './file-kit.js';
import type { Sealer } from './sealer.js';
import type { Terminal } from './terminal.js';

/**
 * The exit codes. `good` means a good verdict or a command that succeeded. `needsReview` means a good verdict
 * whose evidence needs a person's decision.
 */
export const EXIT = {
  good: 0,
  notGood: 1,
  usage: 2,
  runtimeError: 3,
  needsReview: 4,
  /** A sidecar is beside several audio files of its name, so that those files have no verdict. */
  ambiguous: 5,
  interrupted: 130,
  /** The reader of the output ended early. A shell reports the same code for a program that SIGPIPE ends. */
  readerEnded: 141,
} as const;

/** A listener of the service. */
export type Service = 'partner' | 'operator';

/** The configuration of the command line, with the addresses of the service. */
export type ClientConfig = Config['client'] &
  Pick<Config, 'dataDirectory'> & {
    /** The path of the profiles file. */
    readonly profilesFile: string;
    readonly url: string;
    readonly operatorUrl: string;
  };

/** The dependencies of a command. */
export interface Context {
  readonly terminal: Terminal;
  readonly config: ClientConfig;
  /** The package version. */
  readonly version: string;
  /** The signal that is aborted when the user interrupts. */
  readonly signal: AbortSignal;
  /** Opens the device in a directory and creates its key on first use. */
  readonly openSealer: (directory: string) => Promise<Sealer>;
  /** Opens the engine and the credential reader that read a file offline. */
  readonly openFileKit: () => Promise<FileKit>;
  /** Reads a secret from a pipe, or from a terminal without echo. */
  readonly readSecret: (prompt: string) => Promise<string>;
  readonly cluster: Cluster;
}

/** The declaration of an option. An option without a value is a flag. */
export interface OptionSpec {
  /**
   * The name of the value in the help. Shells complete `file` and `directory` with existing paths.
   */
  readonly value?: string;
  readonly required?: true;
  /** The allowed values. */
  readonly choices?: readonly string[];
  /** The bounds of an integer value, both inclusive. */
  readonly range?: readonly [min: number, max: number];
  readonly help: string;
}

/** The name of an operand and its count: `<once>`, `[at most once]`, `<at least once...>`. */
export type OperandSpec = `<${string}>` | `[${string}]`;

/** The typed operands, in the order of their declaration. */
export type OperandsOf<Specs extends readonly OperandSpec[]> = {
  readonly [At in keyof Specs]: Specs[At] extends `<${string}...>`
    ? readonly string[]
    : Specs[At] extends `[${string}]`
      ? string | undefined
      : string;
};

type CamelCase<Name extends string> = Name extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name;
/** The name of an option in code: `sidecarOut` for `--sidecar-out`, `pairs` for `--no-pairs`. */
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

export type Specs = Readonly<Record<string, OptionSpec>>;

/** The values of the options. A flag is always set. Other options are set if given or required. */
export type OptionsOf<Options extends Specs> = {
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

export interface CommandOf<Operands extends readonly OperandSpec[], Options extends Specs> {
  /** The command words as typed: `operator key create`. */
  readonly name: string;
  /** The listener that the command calls, if any. The command then gets the option for its address. */
  readonly service?: Service;
  readonly summary: string;
  /** The help lines. An empty line ends a paragraph. A line that starts with a space is not wrapped. */
  readonly details?: readonly string[];
  /** The help lines about the environment, which replace those of the service. */
  readonly environment?: readonly string[];
  readonly operands?: Operands;
  readonly options?: Options;
  /** @returns the exit code */
  run(operands: OperandsOf<Operands>, options: OptionsOf<Options>, context: Context): Promise<number>;
}

/** A command as the parser sees it. `defineCommand` ties the arguments of `run` to the declaration. */
export interface Command extends Omit<CommandOf<readonly OperandSpec[], Specs>, 'run'> {
  readonly operands: readonly OperandSpec[];
  readonly options: Specs;
  run(operands: readonly unknown[], options: object, context: Context): Promise<number>;
}

/** The commands, in the order of the help. */
export interface CommandSet {
  readonly commands: readonly Command[];
  /** The summaries of words that only start commands, such as `operator key`. */
  readonly groups: Readonly<Record<string, string>>;
}

/** Derives the argument types of a command's `run` from its declared operands and options. */
export function defineCommand<
  const Operands extends readonly OperandSpec[] = [],
  const Options extends Specs = Record<never, never>,
>(command: CommandOf<Operands, Options>): Command {
  return { operands: [], options: {}, ...command } as unknown as Command;
}

/** A wrong usage of the command line: exit code 2. */
export class UsageError extends Error {}

/** A failure of a file or of the service, with a message for the user: exit code 3. */
export class RuntimeError extends Error {
  readonly exitCode: number = EXIT.runtimeError;
}

/** A sidecar that may belong to several files: exit code 5. */
export class AmbiguousError extends RuntimeError {
  override readonly exitCode = EXIT.ambiguous;
}
