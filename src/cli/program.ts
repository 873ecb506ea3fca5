import { TakemarkError } from '../client/errors.js';
import {
  type Command,
  columns,
  commandHelp,
  EXIT,
  parseArguments,
  type Surroundings,
  TroubleError,
  UsageError,
} from './command.js';
import {
  authority,
  createKey,
  createPartner,
  listPartnerKeys,
  listPartners,
  listPlans,
  revokeKey,
} from './commands/operator-accounts.js';
import { initSecrets, migrateStore, replayErasures, rotateSecrets } from './commands/operator-cluster.js';
import { listDeadLetters, replayDeadLetters } from './commands/operator-dead-letters.js';
import { listDeclarations, recordDeclaration } from './commands/operator-declarations.js';
import { issue } from './commands/operator-issue.js';
import { initAuthority, installLeaf, issueLeaf, requestLeaf } from './commands/operator-leaf.js';
import { erasureStatus, readAudit, supplyEvidence, verifyAudit } from './commands/operator-records.js';
import { listSigners, reinstateSigner, revokeSigner } from './commands/operator-signing.js';
import { listKeys, revokeKey as revokeOwnKey, rotateKey } from './commands/partner-keys.js';
import { listProofs, showUsage } from './commands/partner-reports.js';
import { consumers, serve } from './commands/processes.js';
import { seal } from './commands/seal.js';
import { verify } from './commands/verify.js';
import { demo } from './demo/demo.js';
import { printable } from './terminal.js';

/** In the order of the help. */
const COMMANDS: readonly Command[] = [
  verify,
  listProofs,
  listKeys,
  rotateKey,
  revokeOwnKey,
  showUsage,
  seal,
  createPartner,
  listPartners,
  listPlans,
  createKey,
  listPartnerKeys,
  revokeKey,
  issue,
  recordDeclaration,
  listDeclarations,
  supplyEvidence,
  erasureStatus,
  readAudit,
  verifyAudit,
  authority,
  listSigners,
  revokeSigner,
  reinstateSigner,
  requestLeaf,
  installLeaf,
  initAuthority,
  issueLeaf,
  listDeadLetters,
  replayDeadLetters,
  replayErasures,
  initSecrets,
  rotateSecrets,
  migrateStore,
  serve,
  consumers,
  demo,
];

/**
 * The command line as a function. Errors become one line on stderr, never a stack.
 * @param words what was typed behind `takemark`
 * @returns the exit code
 */
export async function run(words: readonly string[], surroundings: Surroundings): Promise<number> {
  const { terminal, signal } = surroundings;
  if (words[0] === '--version') {
    terminal.print(`takemark ${surroundings.version}`);
    return EXIT.good;
  }
  // Help is asked for before the words are judged: whoever asks has not got them right yet.
  const optionsEnd = words.includes('--') ? words.indexOf('--') : words.length;
  const helpAsked =
    words.slice(0, optionsEnd).some((word) => word === '--help' || word === '-h') || words[0] === 'help';
  const path = words[0] === 'help' ? words.slice(1) : words;
  const command = COMMANDS.find(({ name }) => startsWith(path, name.split(' ')));
  if (command === undefined) {
    const firstOption = path.findIndex((word) => word.startsWith('-'));
    return explainChoices(firstOption < 0 ? path : path.slice(0, firstOption), helpAsked, surroundings);
  }
  if (helpAsked) {
    terminal.printRaw(commandHelp(command));
    return EXIT.good;
  }
  try {
    const given = parseArguments(command, path.slice(command.name.split(' ').length));
    const allowPlainHttp = surroundings.config.allowPlainHttp || given.flag('allow-plain-http');
    return await command.run(given, { ...surroundings, config: { ...surroundings.config, allowPlainHttp } });
  } catch (error) {
    if (signal.aborted) {
      terminal.note('takemark: interrupted');
      return EXIT.interrupted;
    }
    if (error instanceof UsageError) {
      terminal.note(`takemark: ${printable(error.message)} (see takemark ${command.name} --help)`);
      return EXIT.usage;
    }
    terminal.note(`takemark: ${printable(troubleInWords(error, command, surroundings))}`);
    return EXIT.trouble;
  }
}

/** No command, or only the first words of some. */
function explainChoices(words: readonly string[], helpAsked: boolean, { terminal }: Surroundings): number {
  const choices = COMMANDS.filter(({ name }) => startsWith(name.split(' '), words));
  if (choices.length === 0) {
    terminal.note(`takemark: there is no command '${printable(words.join(' '))}' (see takemark --help)`);
    return EXIT.usage;
  }
  const help = [
    'Takemark verifies credentialed audio: signature, registry record and exact audio bytes.',
    '',
    'Usage: takemark <command> [options]',
    '',
    'Commands:',
    ...columns(choices.map(({ name, summary }) => [name, summary] as const)),
    '',
    'takemark <command> --help tells more of each.',
    '',
  ].join('\n');
  if (helpAsked) {
    terminal.printRaw(help);
    return EXIT.good;
  }
  terminal.note(help);
  return EXIT.usage;
}

function startsWith(words: readonly string[], start: readonly string[]): boolean {
  return start.every((word, at) => words[at] === word);
}

function troubleInWords(error: unknown, command: Command, { config }: Surroundings): string {
  if (error instanceof TakemarkError) {
    const address = command.name.startsWith('operator') ? config.operatorUrl : config.url;
    const unreached =
      error.code === 'connection_failed' || error.code === 'timed_out' || error.code === 'tls_failed';
    const text = unreached ? `no answer from the service at ${address}: ${error.message}` : error.message;
    const details = [
      error.reason ?? (error.status === undefined ? undefined : error.code),
      error.requestId === undefined ? undefined : `request ${error.requestId}`,
    ].filter((part) => part !== undefined);
    return details.length === 0 ? text : `${text} (${details.join(', ')})`;
  }
  if (error instanceof TroubleError) return error.message;
  // File errors of Node name the operation and the path; refusals of the domain and wrong addresses are
  // sentences of their own.
  return error instanceof Error ? (error.message.split('\n')[0] ?? error.name) : String(error);
}
