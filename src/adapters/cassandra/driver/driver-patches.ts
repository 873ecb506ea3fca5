import { createRequire } from 'node:module';

/** What is used of the driver's classes, which its types leave out. */
interface Connection {
  readonly connected: boolean;
  readonly _operations: ReadonlyMap<number, unknown>;
  readonly _streamIds: { inUse: number };
  _getStreamId(): number | null;
  freeStreamId(header: { readonly streamId: number }): void;
  emit(event: 'idleRequestError' | 'socketClose'): void;
  close(): void;
}
interface ControlConnection {
  connection: Connection | null;
  readonly options: { readonly contactPoints: readonly string[] };
  /** Addresses, with ports. */
  readonly _contactPoints: Set<string>;
  readonly hosts: { get(address: string): unknown };
  _borrowAConnection(hosts: unknown): Connection;
  _parseContactPoint(name: string): Promise<void>;
  _refresh(hosts?: unknown): Promise<void>;
  _refreshControlConnection(hosts: unknown): Promise<void>;
}

/** The stream of an answer whose server did not say which. */
const UNSAID = 0;
const REFRESH_AGAIN_MS = 1000;

const load = createRequire(import.meta.url);

/**
 * Keeps two faults of cassandra-driver 4.10.0 from every client of this process. It has no place of its own
 * for that, so its version is pinned.
 */
export function mendDriver(): void {
  guardStreams(prototypeOf<Connection>('connection', '_getStreamId', 'freeStreamId', 'close'));
  refreshOnce(
    prototypeOf<ControlConnection>(
      'control-connection',
      '_borrowAConnection',
      '_parseContactPoint',
      '_refresh',
      '_refreshControlConnection',
    ),
  );
}

function prototypeOf<Internal>(module: string, ...methods: readonly (keyof Internal & string)[]): Internal {
  const { prototype } = load(`cassandra-driver/lib/${module}.js`) as { readonly prototype: Internal };
  const missing = methods.filter((method) => typeof prototype[method] !== 'function');
  if (missing.length > 0)
    throw new Error(
      `cassandra-driver has no ${missing.join(', ')} in its ${module}: another version than this is made for`,
    );
  return prototype;
}

/**
 * Cassandra 5.0.6 answers a request that waited too long in its queue, as all do that find a server hung, on
 * stream 0 whoever asked ("Query timed out before it could start"). The driver takes each such answer for the
 * end of its own stream 0, gives that to several requests at once, and their answers get mixed up: one is
 * told what another asked, be it a row or whether a condition was met. So stream 0 is not given out, and a
 * connection on which comes what nobody asked is closed: its requests end as with any lost connection, and
 * are sent again or settled.
 */
function guardStreams(prototype: Connection): void {
  const { _getStreamId, freeStreamId } = prototype;
  prototype._getStreamId = function (): number | null {
    const id = _getStreamId.call(this);
    // Until the connection is open it has one request at a time, and a server of another protocol version
    // answers that on stream 0.
    if (id !== UNSAID || !this.connected) return id;
    // Taken for good, and not counted: the driver closes a connection when nothing is in use.
    this._streamIds.inUse -= 1;
    return _getStreamId.call(this);
  };
  prototype.freeStreamId = function (header): void {
    if (!this.connected || header.streamId < 0 || this._operations.has(header.streamId))
      return freeStreamId.call(this, header);
    // As with a heartbeat that fails: out of the pool first, so that what is sent again goes elsewhere.
    this.emit('idleRequestError');
    setImmediate(() => {
      this.close();
      // Who watches the cluster by it is told only of what others close.
      this.emit('socketClose');
    });
  };
}

/**
 * When no node can be reached the driver opens the connection that watches the cluster at a contact point,
 * anew, beside those that it goes on opening anyway, and then listens twice for its end: at the next end it
 * does so twice, then four times. They take each other's connection away, leave others open, and one that
 * finds its own gone ends the process. So only one is under way at a time (inner ones name the hosts that are
 * left to try), and it waits for the nodes that are known, unless a contact point's name has got another
 * address.
 */
function refreshOnce(prototype: ControlConnection): void {
  const { _refresh, _refreshControlConnection } = prototype;
  const underWay = new WeakSet<ControlConnection>();
  prototype._refresh = async function (hosts): Promise<void> {
    if (hosts !== undefined) return _refresh.call(this, hosts);
    if (underWay.has(this)) return;
    underWay.add(this);
    try {
      await _refresh.call(this);
    } catch {
      setTimeout(() => void this._refresh(), REFRESH_AGAIN_MS).unref();
    } finally {
      underWay.delete(this);
    }
  };
  prototype._refreshControlConnection = async function (hosts): Promise<void> {
    try {
      this.connection = this._borrowAConnection(hosts);
    } catch (error) {
      this._contactPoints.clear();
      await Promise.all(this.options.contactPoints.map((name) => this._parseContactPoint(name)));
      if ([...this._contactPoints].every((address) => this.hosts.get(address) !== undefined)) throw error;
      await _refreshControlConnection.call(this, hosts);
    }
  };
}
