import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Requests to the bucket and bytes sent with them, by `<method> <kind of object>`, such as `PUT keys`. */
export type BucketUse = Readonly<Record<string, { readonly requests: number; readonly bytes: number }>>;

/** Kinds of objects whose names have a slash; all others are files. */
const KINDS = ['keys', 'erasures', 'installation'];

type Counts = Map<string, { requests: number; bytes: number }>;

/** Relays to an S3 server, counts what is asked of it, and changes nothing. */
export class BucketCounter {
  readonly endpoint: string;
  readonly #server: ReturnType<typeof createServer>;
  readonly #counts: Counts;

  private constructor(server: ReturnType<typeof createServer>, counts: Counts) {
    this.#server = server;
    this.#counts = counts;
    this.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(target: URL): Promise<BucketCounter> {
    const counts: Counts = new Map();
    const server = createServer((incoming, response) => {
      const kind = kindOf(incoming);
      const { requests, bytes } = counts.get(kind) ?? { requests: 0, bytes: 0 };
      counts.set(kind, {
        requests: requests + 1,
        bytes: bytes + Number(incoming.headers['content-length'] ?? 0),
      });
      pass(target, incoming, response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new BucketCounter(server, counts);
  }

  get use(): BucketUse {
    return Object.fromEntries(this.#counts);
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** Relays a request with every header but `expect`, since the client signs them with the counter's address. */
function pass(target: URL, incoming: IncomingMessage, response: ServerResponse): void {
  const { expect: _answered, ...headers } = incoming.headers;
  const onward = request(target, { method: incoming.method!, path: incoming.url!, headers }, (answer) => {
    response.writeHead(answer.statusCode!, answer.headers);
    answer.pipe(response);
  });
  onward.on('error', () => response.destroy());
  incoming.on('error', () => onward.destroy());
  incoming.pipe(onward);
}

function kindOf({ method = '', url = '' }: IncomingMessage): string {
  const { pathname, searchParams } = new URL(url, 'http://bucket');
  if (searchParams.has('list-type')) return 'LIST files';
  const kind = KINDS.find((each) => pathname.includes(`/${each}/`));
  return `${method} ${kind ?? 'files'}`;
}
