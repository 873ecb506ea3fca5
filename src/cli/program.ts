import { CommanderError } from 'commander';
import { TakemarkError } from '../client/errors.js';
import { type ClientConfig, type Command, type Context, EXIT, RuntimeError, UsageError } from './command.js';
import { captureArdour } from './commands/capture-ardour.js';
import { captureArdourHook } from './commands/capture-ardour-hook.js';
import { captureAudacity } from './commands/capture-audacity.js';
import { completionCommands } from './commands/completion.js';
import { showConfig } from './commands/config.js';
import { examineService } from './commands/doctor.js';
import { fixtures } from './commands/fixtures.js';
import { identify } from './commands/identify.js';
import { inspect } from './commands/inspect.js';
import { PARTNER_COMMANDS, PARTNER_KEY_COMMANDS } from './commands/operator-accounts.js';
import { BACKUP_COMMANDS } from './commands/operator-backup.js';
import { CLUSTER_COMMANDS } from './commands/operator-cluster.js';
import { DEAD_LETTER_COMMANDS } from './commands/operator-dead-letters.js';
import { DECLARATION_COMMANDS } from './commands/operator-declarations.js';
import { DEVICE_COMMANDS } from './commands/operator-devices.js';
import { examineInstallation } from './commands/operator-doctor.js';
import { issue } from './commands/operator-issue.js';
import { LEAF_COMMANDS } from './commands/operator-leaf.js';
import { importLegacy } from './commands/operator-legacy.js';
import { MOVE_COMMANDS } from './commands/operator-move.js';
import { PLAN_COMMANDS } from './commands/operator-plans.js';
import { RECORD_COMMANDS } from './commands/operator-records.js';
import { PARTNER_REVIEW_COMMANDS } from './commands/operator-reviews.js';
import { fillSamples } from './commands/operator-samples.js';
import { SIGNING_COMMANDS } from './commands/operator-signing.js';
import { SOURCE_DETAIL_COMMANDS } from './commands/operator-source-detail.js';
import { simulateSessionTrace } from './commands/operator-trace.js';
import { KEY_COMMANDS } from './commands/partner-keys.js';
import { PROOF_COMMANDS } from './commands/partner-proofs.js';
import { REPORT_COMMANDS } from './commands/partner-reports.js';
import { REVIEW_COMMANDS } from './commands/partner-reviews.js';
import { PROCESS_COMMANDS } from './commands/processes.js';
import { PROFILE_COMMANDS } from './commands/profiles.js';
import { report } from './commands/report.js';
import { seal } from './commands/seal.js';
import { strip } from './commands/strip.js';
import { verify } from './commands/verify.js';
import { demo } from './demo/demo.js';
import { errorText } from './file-errors.js';
import { parseAndRun } from './parser.js';
import { type ClientSettings, withAddress, withProfile } from './service-address.js';
import { serviceErrorText } from './service-errors.js';
import { printable } from './terminal.js';

/** The order is that of the help. */
const COMMANDS: readonly Command[] = [
  ...[verify, report, identify, inspect, strip, fixtures],
  ...PROOF_COMMANDS,
  ...REVIEW_COMMANDS,
  ...KEY_COMMANDS,
  ...REPORT_COMMANDS,
  examineService,
  ...PROFILE_COMMANDS,
  ...[seal, captureArdour, captureArdourHook, captureAudacity],
  ...PARTNER_COMMANDS,
  ...PLAN_COMMANDS,
  ...PARTNER_KEY_COMMANDS,
  ...[issue, importLegacy, simulateSessionTrace],
  ...DECLARATION_COMMANDS,
  ...PARTNER_REVIEW_COMMANDS,
  ...RECORD_COMMANDS,
  fillSamples,
  ...SIGNING_COMMANDS,
  ...DEVICE_COMMANDS,
  ...SOURCE_DETAIL_COMMANDS,
  ...LEAF_COMMANDS,
  ...DEAD_LETTER_COMMANDS,
  ...BACKUP_COMMANDS,
  ...MOVE_COMMANDS,
  ...CLUSTER_COMMANDS,
  examineInstallation,
  ...PROCESS_COMMANDS,
  ...[showConfig, demo],
  ...completionCommands(() => ({ commands: COMMANDS, groups: GROUPS })),
];

const GROUPS: Readonly<Record<string, string>> = {
  proofs: 'Your proofs',
  records: 'Records of the registry',
  reviews: 'Your review cases',
  keys: 'Your keys',
  profile: 'Saved services and their keys',
  authority: 'Your own offline certificate authority',
  capture: 'Capture traces of DAW sessions',
  completion: 'Shell completion',
  operator: 'Commands for the operator of a service',
  'operator partner': 'Partners',
  'operator plan': 'Plans, their limits and their assignment to partners',
  'operator key': 'Keys of partners',
  'operator declaration': "Creators' declarations",
  'operator legacy': 'Proofs of an earlier registry',
  'operator trace': 'Capture traces',
  'operator reviews': "Partners' review cases, and the evidence requests of each case",
  'operator erasure': 'Erasures of proofs',
  'operator audit': 'Audit logs',
  'operator samples': 'Samples digests',
  'operator signing': 'Signing certificates',
  'operator dlq': 'Dead letters: events that no consumer could process',
  'operator secrets': "A cluster's bundle of secrets",
  'operator devices': 'Devices of creators and of session agents',
  'operator source-detail': 'Which partners may receive tracks and placements of sessions',
  'operator consent': "Creators' consent to source detail",
};

/** The dependencies of the command line before a command is known. */
export interface Surroundings extends Omit<Context, 'config'> {
  readonly config: ClientSettings;
}

/**
 * Runs the command line. An error is printed as one line on stderr, never as a stack.
 * @param argv the words after `takemark`
 * @returns the exit code
 */
export async function run(argv: readonly string[], context: Surroundings): Promise<number> {
  const { terminal, version } = context;
  let exitCode: number = EXIT.good;
  try {
    await parseAndRun({
      commands: COMMANDS,
      groups: GROUPS,
      argv,
      version,
      terminal,
      misused: (message, path) => terminal.note(usageLine(message, path)),
      run: async (command, operands, options) => {
        exitCode = await runCommand(command, operands, options, context);
      },
    });
    return exitCode;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? EXIT.good : EXIT.usage;
  }
}

async function runCommand(
  command: Command,
  operands: readonly unknown[],
  options: Readonly<Record<string, unknown>>,
  context: Surroundings,
): Promise<number> {
  const { terminal, signal, config: settings } = context;
  let config: ClientConfig | undefined;
  try {
    if (operands.flat().includes('')) throw new UsageError('an operand is empty');
    const allowPlainHttp = settings.allowPlainHttp || options['allowPlainHttp'] === true;
    const { service } = command;
    const text = (name: string): string | undefined =>
      typeof options[name] === 'string' ? options[name] : undefined;
    const address = text(service === 'operator' ? 'operatorUrl' : 'url');
    const own = await withProfile({ ...settings, allowPlainHttp }, service, text('profile'), address);
    config = await withAddress(own, service, address);
    return await command.run(operands, options, { ...context, config });
  } catch (error) {
    if (signal.aborted) {
      // A write error of stdout has been reported already, and a closed pipe needs no message.
      const { code, syscall } = signal.reason as NodeJS.ErrnoException;
      if (code === 'EPIPE') return EXIT.readerEnded;
      if (syscall === undefined) terminal.note('takemark: interrupted');
      return EXIT.interrupted;
    }
    if (error instanceof UsageError) {
      terminal.note(usageLine(error.message, command.name));
      return EXIT.usage;
    }
    terminal.note(`takemark: ${printable(describeError(error, command, config))}`);
    return error instanceof RuntimeError ? error.exitCode : EXIT.runtimeError;
  }
}

function usageLine(message: string, path: string): string {
  return `takemark: ${printable(message)} (see ${['takemark', path, '--help'].filter((part) => part !== '').join(' ')})`;
}

function describeError(error: unknown, { service }: Command, config: ClientConfig | undefined): string {
  if (error instanceof TakemarkError) {
    const text =
      service === undefined || config === undefined
        ? errorText(error)
        : serviceErrorText(error, service, service === 'operator' ? config.operatorUrl : config.url);
    const details = [
      error.reason ?? (error.status === undefined ? undefined : error.code),
      error.reviewId,
      error.requestId === undefined ? undefined : `request ${error.requestId}`,
    ].filter((part) => part !== undefined);
    return details.length === 0 ? text : `${text} (${details.join(', ')})`;
  }
  if (error instanceof RuntimeError) return error.message;
  return errorText(error);
}
