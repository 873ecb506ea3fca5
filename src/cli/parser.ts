import { Argument, InvalidArgumentError, Option, Command as Parser } from 'commander';
import type { Command, CommandSet, OptionSpec } from './command.js';
import { exampleOf } from './examples.js';
import { ADDRESSES } from './service-address.js';
import type { Terminal } from './terminal.js';

/** The width of every help text in columns. It is fixed, so that copied and piped help looks the same. */
const HELP_WIDTH = 80;

const DESCRIPTION = 'Takemark verifies credentialed audio: signature, registry record and exact audio bytes.';

/** The short forms of options, as other programs have them. */
const SHORT: Readonly<Record<string, string>> = { json: '-j', limit: '-n', out: '-o', profile: '-p' };

/** Returns all options of a command: its own, the address of its service, and the common ones. */
export function optionsOf({ options, service }: Command): Readonly<Record<string, OptionSpec>> {
  if (service === undefined) return options;
  const { option, variable } = ADDRESSES[service];
  return {
    ...options,
    [option]: { value: 'address', help: `address of the service, instead of ${variable}` },
    ...(service === 'partner'
      ? { profile: { value: 'name', help: 'profile to use, instead of TAKEMARK_PROFILE' } }
      : {}),
    'allow-plain-http': { help: 'allow sending secrets over plain http to another machine' },
  };
}

export interface ParserOptions extends CommandSet {
  readonly argv: readonly string[];
  readonly version: string;
  readonly terminal: Terminal;
  /** Gets the message of wrong use, and the command or group that the words matched. */
  readonly misused: (message: string, path: string) => void;
  readonly run: (
    command: Command,
    operands: readonly unknown[],
    options: Readonly<Record<string, unknown>>,
  ) => Promise<void>;
}

/**
 * Parses the words and runs their command. A parser keeps parsed values, so each run builds a new parser.
 * @throws CommanderError if no command is run. Everything is printed already
 */
export async function parseAndRun(options: ParserOptions): Promise<void> {
  const root = buildParser(options);
  const { argv } = options;
  const end = argv.indexOf('--');
  const judged = end < 0 ? argv : argv.slice(0, end);
  const helpAsked = argv[0] === 'help' || judged.some((word) => word === '--help' || word === '-h');
  if (!helpAsked) {
    await root.parseAsync(argv, { from: 'user' });
    return;
  }
  // Show help before validating the words: the user who asks may not have them right yet.
  const words = argv[0] === 'help' ? argv.slice(1) : argv;
  const firstOption = words.findIndex((word) => word.startsWith('-'));
  const path = firstOption < 0 ? words : words.slice(0, firstOption);
  const asked = findParser(root, path);
  if (asked === undefined) await root.parseAsync(path, { from: 'user' });
  else asked.outputHelp();
}

/** Returns the command or group at the start of the words, or undefined for an unknown word. */
function findParser(root: Parser, words: readonly string[]): Parser | undefined {
  let parser = root;
  for (const word of words) {
    if (parser.commands.length === 0) return parser;
    const next = parser.commands.find((candidate) => candidate.name() === word);
    if (next === undefined) return undefined;
    parser = next;
  }
  return parser;
}

function buildParser({ commands, groups, argv, version, terminal, misused, run }: ParserOptions): Parser {
  const parsers = new Map<string, Parser>();
  const parserAt = (path: string): Parser => {
    const known = parsers.get(path);
    if (known !== undefined) return known;
    const words = path.split(' ');
    const name = words.pop() ?? '';
    const parser = path === '' ? new Parser('takemark') : parserAt(words.join(' ')).command(name);
    parsers.set(path, parser);
    return parser
      .helpCommand(false)
      .helpOption('-h, --help', 'show this help')
      .configureHelp({ subcommandTerm: (subcommand) => subcommand.name() })
      .configureOutput({
        writeOut: (text) => terminal.printRaw(text),
        writeErr: (text) => terminal.note(text.trimEnd()),
        // Commander prints a suggestion on its own line.
        outputError: (text) =>
          misused(
            text
              .replace(/^error: /, '')
              .trimEnd()
              .replaceAll('\n', ' '),
            path,
          ),
        getOutHelpWidth: () => HELP_WIDTH,
        getErrHelpWidth: () => HELP_WIDTH,
      })
      .exitOverride();
  };
  parserAt('')
    .description(DESCRIPTION)
    .version(`takemark ${version}`, '-V, --version', 'show the version')
    .addHelpText('after', '\nRun takemark <command> --help for details.');
  for (const command of commands) {
    const parser = parserAt(command.name).summary(command.summary).description(descriptionOf(command));
    parser.addHelpText('after', () => `\nExample:\n  ${exampleOf(command).replaceAll('\n', '\n  ')}`);
    for (const spec of command.operands) parser.addArgument(new Argument(spec));
    for (const [name, spec] of Object.entries(optionsOf(command)))
      parser.addOption(optionOf(name, spec, argv));
    parser.action(async () => {
      await run(command, parser.processedArgs as readonly unknown[], valuesOf(parser));
    });
  }
  for (const [path, summary] of Object.entries(groups)) parserAt(path).description(summary);
  return parserAt('');
}

function optionOf(
  name: string,
  { value, required, choices, range, help }: OptionSpec,
  argv: readonly string[],
): Option {
  const flag = `--${name}`;
  const description = [
    help,
    ...(choices === undefined ? [] : [`one of ${choices.join(', ')}`]),
    ...(required === true ? ['required'] : []),
  ].join('; ');
  const flags = SHORT[name] === undefined ? flag : `${SHORT[name]}, ${flag}`;
  const option = new Option(value === undefined ? flags : `${flags} <${value}>`, description);
  if (value === undefined) return option;
  return option.makeOptionMandatory(required === true).argParser((text) => {
    if (text === '') throw new InvalidArgumentError('It is empty.');
    // `--out --force` means a forgotten value, not a file named `--force`.
    if (/^-./.test(text) && !argv.includes(`${flag}=${text}`))
      throw new InvalidArgumentError(`Write a value that starts with a dash as ${flag}=${text}.`);
    if (choices?.includes(text) === false)
      throw new InvalidArgumentError(`It must be one of ${choices.join(', ')}.`);
    return range === undefined ? text : wholeNumber(text, range);
  });
}

/** Returns the paragraphs of a help text, each on one line, which the help wraps. */
function descriptionOf({ summary, details, service, environment }: Command): string {
  const ownEnvironment = environment ?? (service === undefined ? [] : ADDRESSES[service].environment);
  return [[`${summary}.`], details ?? [], ownEnvironment]
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')
    .replace(/(?<=[^\n])\n(?=\S)/g, ' ');
}

function wholeNumber(text: string, [min, max]: NonNullable<OptionSpec['range']>): number {
  const number = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
  if (!(number >= min && number <= max))
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  return number;
}

/** Returns the option values under their code names. A flag that was not given is false. */
function valuesOf(parser: Parser): Readonly<Record<string, unknown>> {
  const given = parser.opts<Record<string, unknown>>();
  const flags = parser.options.filter((option) => option.isBoolean());
  return { ...Object.fromEntries(flags.map((flag) => [flag.attributeName(), false])), ...given };
}
