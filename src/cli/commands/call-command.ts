import type { Client } from '../../client/index.js';
import {
  type Command,
  type CommandOf,
  type Context,
  defineCommand,
  EXIT,
  type OperandSpec,
  type OperandsOf,
  type OptionsOf,
  type Service,
  type Specs,
} from '../command.js';
import { findOperatorToken, OperatorClient } from '../operator-client.js';
import { serviceAccess } from '../service-access.js';
import { printable, type Terminal } from '../terminal.js';
import { withPartner } from './partner-account.js';

/** Makes the call of a command, with a client that is closed afterwards. */
type Work<ClientOf, Result> = (client: ClientOf) => Result | Promise<Result>;
/** An entry of a list, or the whole of any other result. */
type EntryOf<Result> = Result extends AsyncIterable<infer Entry> | readonly (infer Entry)[] ? Entry : Result;

/** A command that makes calls and prints the result. */
interface CallOf<ClientOf, Operands extends readonly OperandSpec[], Options extends Specs, Result>
  extends Omit<CommandOf<Operands, Options>, 'service' | 'run'> {
  /** The help of `--json`, which prints each entry as one line of JSON. */
  readonly json: string;
  /** Checks the words, and returns the call. */
  call(
    operands: OperandsOf<Operands>,
    options: OptionsOf<Options>,
    context: Context,
  ): Work<ClientOf, Result> | Promise<Work<ClientOf, Result>>;
  /** Returns the columns of an entry's line. An undefined column is omitted. */
  readonly columns?: (entry: EntryOf<Result>) => readonly (string | undefined)[];
  /** Prints entries that are more than a line. */
  readonly print?: (entries: readonly EntryOf<Result>[], terminal: Terminal) => void;
  /** The note for an empty list. */
  readonly empty?: string;
  /** Returns false if the exit code must be 1. */
  readonly isGood?: (entry: EntryOf<Result>) => boolean;
}

export const partnerCall = callsOf<Client>('partner', withPartner);
export const operatorCall = callsOf<OperatorClient>('operator', withOperator);

function callsOf<ClientOf>(
  service: Service,
  withClient: (context: Context, work: (client: ClientOf) => Promise<void>) => Promise<void>,
) {
  return <
    const Operands extends readonly OperandSpec[] = [],
    const Options extends Specs = Record<never, never>,
    Result = unknown,
  >({
    json,
    call,
    columns,
    print,
    empty,
    isGood = () => true,
    ...command
  }: CallOf<ClientOf, Operands, Options, Result>): Command =>
    defineCommand<Operands, Options>({
      ...command,
      service,
      options: { ...command.options, json: { help: json } } as unknown as Options,
      async run(operands, options, context) {
        const { terminal } = context;
        const { json: asJson } = options as { readonly json?: boolean };
        const work = await call(operands, options, context);
        const collected: EntryOf<Result>[] = [];
        let isEmpty = true;
        let areGood = true;
        await withClient(context, async (client) => {
          for await (const entry of entriesIn(await work(client))) {
            isEmpty = false;
            areGood &&= isGood(entry);
            if (asJson) terminal.printJson(entry);
            else if (columns !== undefined) terminal.print(lineOf(columns(entry)));
            else collected.push(entry);
          }
        });
        if (!asJson) print?.(collected, terminal);
        if (isEmpty && empty !== undefined) terminal.note(empty);
        return areGood ? EXIT.good : EXIT.notGood;
      },
    });
}

function entriesIn<Result>(result: Result): AsyncIterable<EntryOf<Result>> | readonly EntryOf<Result>[] {
  const isList = Array.isArray(result) || (result instanceof Object && Symbol.asyncIterator in result);
  return isList ? (result as AsyncIterable<EntryOf<Result>>) : [result as EntryOf<Result>];
}

/** Returns columns as one line that is safe to print. */
export function lineOf(columns: readonly (string | undefined)[]): string {
  return printable(columns.filter((column) => column !== undefined).join('  '));
}

/** Runs `work` with a client and closes the client afterwards. */
export async function withOperator<T>(
  { config, signal }: Context,
  work: (client: OperatorClient) => Promise<T>,
): Promise<T> {
  const client = new OperatorClient({
    url: config.operatorUrl,
    token: await findOperatorToken(config),
    signal,
    ...(await serviceAccess(config, config.operatorUrl)),
  });
  try {
    return await work(client);
  } finally {
    client.close();
  }
}
