import { type ChildProcess, type ForkOptions, fork } from 'node:child_process';
import { once } from 'node:events';

/** The calls that a child process takes, by name. */
export type Methods = Readonly<Record<string, (argument: never) => unknown>>;

interface Request {
  readonly call: number;
  readonly method: string;
  readonly argument: unknown;
}

interface Answer {
  readonly call: number;
  readonly value?: unknown;
  readonly error?: string;
}

const STOP_MS = 15_000;
/** The timeout of a call in milliseconds. It is longer than any call takes, even on a busy machine. */
const CALL_MS = 180_000;

/** Answers the parent's calls; for the child's side, once. A child whose parent is gone ends. */
export function answerCalls(methods: Methods): void {
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  process.on('message', (message: Request) => {
    const { call, method, argument } = message;
    const answer = (result: Omit<Answer, 'call'>): void => void process.send?.({ call, ...result });
    Promise.resolve()
      .then(() => methods[method]!(argument as never))
      .then(
        (value) => answer({ value }),
        (error: unknown) =>
          answer({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
      );
  });
}

/** A child process that answers calls, one at a time or many. */
export class Child<M extends Methods> {
  readonly process: ChildProcess;
  readonly #waiting = new Map<
    number,
    { readonly resolve: (value: never) => void; readonly reject: (error: Error) => void }
  >();
  #calls = 0;
  #words = '';

  constructor(file: URL, options: ForkOptions & { readonly arguments?: readonly string[] } = {}) {
    this.process = fork(file, options.arguments ?? [], {
      serialization: 'advanced',
      silent: true,
      ...options,
    });
    for (const stream of [this.process.stdout, this.process.stderr])
      stream?.on('data', (chunk: Buffer) => (this.#words = (this.#words + chunk.toString()).slice(-4000)));
    this.process.on('message', (answer: Answer) => {
      const waiting = this.#waiting.get(answer.call);
      this.#waiting.delete(answer.call);
      if (answer.error === undefined) waiting?.resolve(answer.value as never);
      else waiting?.reject(new Error(answer.error));
    });
    this.process.on('exit', (code, signal) => {
      for (const { reject } of this.#waiting.values())
        reject(new Error(`${file.pathname} ended (${signal ?? code}): ${this.#words}`));
      this.#waiting.clear();
    });
  }

  /** The last it wrote. */
  get words(): string {
    return this.#words;
  }

  call<Name extends keyof M & string>(
    method: Name,
    ...[argument]: Parameters<M[Name]>
  ): Promise<Awaited<ReturnType<M[Name]>>> {
    const call = ++this.#calls;
    return new Promise((resolve, reject) => {
      const patience = setTimeout(
        () => reject(new Error(`${method} was not answered: ${this.#words}`)),
        CALL_MS,
      );
      const settled =
        <Value>(settle: (value: Value) => void) =>
        (value: Value) => {
          clearTimeout(patience);
          settle(value);
        };
      this.#waiting.set(call, { resolve: settled(resolve), reject: settled(reject) });
      this.process.send({ call, method, argument } satisfies Request);
    });
  }

  async stop(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const exited = once(this.process, 'exit');
    this.process.kill('SIGTERM');
    const patience = setTimeout(() => this.process.kill('SIGKILL'), STOP_MS);
    await exited;
    clearTimeout(patience);
  }
}
