import { createRequire } from 'node:module';

/** The members of the driver's internal class that its types leave out. */
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
  /** The addresses with ports. */
  readonly _contactPoints: Set<string>;
  readonly hosts: { get(address: string): unknown };
  _borrowAConnection(hosts: unknown): Connection;
  _parseContactPoint(name: string): Promise<void>;
  _refresh(hosts?: unknown): Promise<void>;
  _refreshControlConnection(hosts: unknown): Promise<void>;
}

/** The stream id of a frame whose server named no stream. */
const UNNAMED_STREAM = 0;
const REFRESH_AGAIN_MS = 1000;

const load = createRequire(import.meta.url);

/** The mark of a patched prototype, so that a second connection does not patch it again. */
const PATCHED = Symbol('patched');

/**
 * Mends two faults of cassandra-driver 4.10.0 for every client of this process. The driver has no place for
 * either, so its version is pinned, and private methods of two classes are replaced:
 *   - `Connection` (lib/connection.js): `_getStreamId` and `freeStreamId`; see `guardStreams`
 *   - `ControlConnection` (lib/control-connection.js): `_refresh` and `_refreshControlConnection`; see
 *     `refreshOnce`
 * Called again it does nothing.
 * @throws Error for a driver without these methods
 */
export function patchDriver(): void {
  const connection = prototypeOf<Connection>('connection', '_getStreamId', 'freeStreamId', 'close');
  const controlConnection = prototypeOf<ControlConnection>(
    'control-connection',
    '_borrowAConnection',
    '_parseContactPoint',
    '_refresh',
    '_refreshControlConnection',
  );
  if (Object.hasOwn(connection, PATCHED)) return;
  Object.defineProperty(connection, PATCHED, { value: true });
  guardStreams(connection);
  refreshOnce(controlConnection);
}

function prototypeOf<Internal>(module: string, ...methods: readonly (keyof Internal & string)[]): Internal {
  const { prototype } = load(`cassandra-driver/lib/${module}.js`) as { readonly prototype: Internal };
  const missing = methods.filter((method) => typeof prototype[method] !== 'function');
  if (missing.length > 0)
    throw new Error(
      `cassandra-driver has no ${missing.join(', ')} in its ${module}: this service does not support the installed version`,
    );
  return prototype;
}

/**
 * Keeps stream 0 free, and closes a connection that receives a frame without a request.
 *
 * Cassandra 5.0.6 refuses a request that waited too long in its queue on stream 0, and not on the stream of the request
 * ("Query timed out before it could start"). Every request to a hung server ends like this. The driver takes each
 * such frame for the end of its own stream 0, and gives the stream to several requests at once. Their frames are then
 * mixed up: a caller gets the row, or the result of a condition, of another caller. The requests of a closed connection
 * end as with any lost connection, and are sent again.
 */
function guardStreams(prototype: Connection): void {
  const { _getStreamId, freeStreamId } = prototype;
  prototype._getStreamId = function (): number | null {
    const id = _getStreamId.call(this);
    // Until the connection is open it has one request at a time, and a server of another protocol version
    // answers this request on stream 0.
    if (id !== UNNAMED_STREAM || !this.connected) return id;
    // Stream 0 is taken for good, and not counted: the driver closes a connection when nothing is in use.
    this._streamIds.inUse -= 1;
    return _getStreamId.call(this);
  };
  prototype.freeStreamId = function (header): void {
    if (!this.connected || header.streamId < 0 || this._operations.has(header.streamId))
      return freeStreamId.call(this, header);
    // Out of the pool first, as with a heartbeat that fails, so that what is sent again goes elsewhere.
    this.emit('idleRequestError');
    setImmediate(() => {
      this.close();
      // The watcher of the cluster hears only of connections that others close.
      this.emit('socketClose');
    });
  };
}

/**
 * Lets one refresh of the connection that watches the cluster run at a time.
 *
 * When no node can be reached the driver opens that connection anew at a contact point, beside those that it
 * goes on opening anyway, and then listens twice for its end. At the next end it opens two, then four. They
 * take each other's connection away, leave others open, and one that finds its own gone ends the process. So
 * a refresh that finds another under way does nothing (inner calls name the hosts that are left to try). A
 * refresh waits for the nodes that are known, unless a contact point's name has got another address.
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
