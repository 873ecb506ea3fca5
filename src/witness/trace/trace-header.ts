/** Header of a trace as canonical MessagePack: one map, its members in one order. */

import {
  decodeMessagePackStrict,
  encodeMessagePack,
  type MessagePackValue,
} from '../../core/codec/messagepack.js';
import { defined } from '../../core/domain/defined.js';
import {
  CHANNEL_SUPPORT,
  CHANNELS,
  type Channel,
  type ChannelSupport,
  DEVICE_ALGORITHMS,
  TRACE_LIMITS,
  TRACE_VERSION,
  TraceFault,
  type TraceHeader,
} from '../domain/trace.js';
import { readDevicePublicKey } from './trace-chain.js';

const TRACE_ID = /^[0-9a-f]{32}$/;
const ADAPTER = /^[a-z][a-z0-9-]{0,31}$/;
const RELEASE = /^[0-9.]{1,32}$/;
/** The last second of the year 9999 in unix seconds. */
const MAX_STARTED_AT = 253_402_300_799;
const MAX_KEY_BYTES = 256;

/** @throws TraceFault where a member is not what the format demands */
export function encodeTraceHeader(header: TraceHeader): Uint8Array {
  checkHeader(header);
  return encodeMessagePack(toMap(header));
}

/** Returns whether the bytes are a header of this version. The version is the first member of the map. */
export function decodeTraceHeader(
  bytes: Uint8Array,
):
  | { readonly header: TraceHeader }
  | { readonly fault: 'malformed' | 'version_unknown'; readonly text: string } {
  const decoded = decodeMessagePackStrict(bytes, TRACE_LIMITS.headerBytes);
  if (!decoded.ok || !isMap(decoded.value)) return { fault: 'malformed', text: 'the header is not a map' };
  const map = decoded.value;
  if (map['version'] !== TRACE_VERSION)
    return Number.isSafeInteger(map['version'])
      ? { fault: 'version_unknown', text: 'the version is unknown' }
      : { fault: 'malformed', text: 'the header has no version' };
  try {
    const header = fromMap(map);
    checkHeader(header);
    return Buffer.compare(encodeMessagePack(toMap(header)), bytes) === 0
      ? { header }
      : {
          fault: 'malformed',
          text: 'the header does not have exactly the expected members in the expected order',
        };
  } catch (error) {
    if (error instanceof TraceFault) return { fault: 'malformed', text: error.message };
    throw error;
  }
}

type HeaderMap = Readonly<Record<string, MessagePackValue>>;

function isMap(value: MessagePackValue | undefined): value is HeaderMap {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
  );
}

function toMap(header: TraceHeader): HeaderMap {
  return defined({
    version: header.version,
    traceId: Buffer.from(header.traceId, 'hex'),
    adapter: header.adapter,
    adapterVersion: header.adapterVersion,
    dawVersion: header.dawVersion,
    startedAt: header.startedAt,
    simulated: header.simulated,
    channels: Object.fromEntries(CHANNELS.map((channel) => [channel, header.channels[channel]])),
    algorithm: header.algorithm,
    publicKey: header.publicKey,
  });
}

/** Returns the header of a map whose members `checkHeader` still has to check. */
function fromMap(map: HeaderMap): TraceHeader {
  const { traceId, publicKey, channels } = map;
  if (!(traceId instanceof Uint8Array)) throw new TraceFault('traceId is not 16 bytes');
  if (!(publicKey instanceof Uint8Array)) throw new TraceFault('publicKey is not a key of the algorithm');
  if (!isMap(channels)) throw new TraceFault('channels is not a map');
  return defined({
    version: TRACE_VERSION,
    traceId: Buffer.from(traceId).toString('hex'),
    adapter: map['adapter'] as string,
    adapterVersion: map['adapterVersion'] as string,
    dawVersion: map['dawVersion'] as string | undefined,
    startedAt: map['startedAt'] as number,
    simulated: map['simulated'] as boolean,
    channels: { ...channels } as unknown as Record<Channel, ChannelSupport>,
    algorithm: map['algorithm'] as TraceHeader['algorithm'],
    publicKey: Uint8Array.from(publicKey),
  });
}

function checkHeader(header: TraceHeader): void {
  check(TRACE_ID.test(header.traceId), 'traceId is not 16 bytes');
  check(isText(header.adapter, ADAPTER), 'adapter is not a slug');
  check(isText(header.adapterVersion, RELEASE), 'adapterVersion has characters other than digits and dots');
  check(
    header.dawVersion === undefined || isText(header.dawVersion, RELEASE),
    'dawVersion has characters other than digits and dots',
  );
  check(
    Number.isSafeInteger(header.startedAt) && header.startedAt >= 0 && header.startedAt <= MAX_STARTED_AT,
    'startedAt is not a time',
  );
  check(typeof header.simulated === 'boolean', 'simulated is neither true nor false');
  const names = Object.keys(header.channels);
  check(
    names.length === CHANNELS.length &&
      CHANNELS.every((channel) => CHANNEL_SUPPORT.includes(header.channels[channel])),
    'channels does not list the support of exactly the channels of this version',
  );
  check(DEVICE_ALGORITHMS.includes(header.algorithm), 'algorithm is unknown');
  check(
    header.publicKey.length <= MAX_KEY_BYTES &&
      readDevicePublicKey(header.publicKey, header.algorithm) !== undefined,
    'publicKey is not a key of the algorithm',
  );
}

function isText(value: unknown, pattern: RegExp): boolean {
  return typeof value === 'string' && pattern.test(value);
}

function check(holds: boolean, text: string): void {
  if (!holds) throw new TraceFault(text);
}
