import { createHash, createPublicKey, type KeyObject } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import type { DeviceAlgorithm } from '../../witness/domain/trace.js';
import { RuntimeError, UsageError } from '../command.js';
import type { ResponseAt } from '../operator-client.js';
import { formatTime } from '../terminal.js';
import { parseTime } from '../time-option.js';
import { operatorCall } from './call-command.js';

const MAX_KEY_BYTES = 4096;
const DEVICE_ID = /^[0-9a-f]{64}$/;
const JSON_HELP = 'print the device as one line of JSON';

const listDevices = operatorCall({
  name: 'operator devices list',
  summary: 'List the capture devices in the order of enrolment',
  options: {
    from: { value: 'n', range: [1, 1_000_000], help: 'number of the first device to list (1)' },
    limit: { value: 'n', range: [1, 1000], help: 'maximum number of devices, 1 to 1000 (100)' },
  },
  json: 'print one line of JSON per device',
  call:
    (_operands, { from = 1, limit = 100 }) =>
    (client) =>
      client.list('GET devices', 'devices', { query: { from, limit } }),
  columns: columnsOf,
});

const enrolDevice = operatorCall({
  name: 'operator devices enrol',
  summary: 'Enrol a capture device by its public key or its id',
  details: [
    'The id of a device is the SHA-256 of its public key. The service stores only the id. A revoked device',
    'cannot be enrolled again: create a new key on it.',
  ],
  options: {
    key: { value: 'file', help: 'public key of the device, PEM or DER' },
    device: { value: 'deviceId', help: 'id of the device, instead of --key: 64 hex digits' },
  },
  json: JSON_HELP,
  async call(_operands, { key, device }) {
    if ((key === undefined) === (device === undefined)) throw new UsageError('give either --key or --device');
    const json = key === undefined ? { deviceId: idOf(device!) } : await readDevice(key);
    return (client) => client.call('POST devices', { json });
  },
  columns: columnsOf,
});

const revokeDevice = operatorCall({
  name: 'operator devices revoke',
  summary: 'Revoke a capture device permanently, from a given time on',
  details: [
    'A trace used for issuing after that time does not count as evidence of an enrolled device. The report',
    'of a proof issued before that time says that its device was revoked later.',
  ],
  options: {
    device: { value: 'deviceId', required: true, help: 'device id: 64 hex digits' },
    from: {
      value: 'time',
      help: 'when the key may have been lost: unix seconds or 2026-01-31T12:00:00Z (now)',
    },
  },
  json: JSON_HELP,
  call(_operands, { device, from }) {
    const json = from === undefined ? {} : { from: parseTime('--from', from) };
    const path = { deviceId: idOf(device) };
    return (client) => client.call('POST devices/{deviceId}/revoke', { path, json });
  },
  columns: columnsOf,
});

export const DEVICE_COMMANDS = [listDevices, enrolDevice, revokeDevice];

function columnsOf(device: ResponseAt<'POST devices'>): readonly string[] {
  const { deviceId, algorithm = '', enrolledAt, revocation } = device;
  const state = revocation === undefined ? 'enrolled' : `revoked from ${formatTime(revocation.from)}`;
  return [deviceId, algorithm.padEnd(7), `since ${formatTime(enrolledAt)}`, state];
}

/** @throws UsageError */
function idOf(text: string): string {
  if (!DEVICE_ID.test(text)) throw new UsageError('--device must be 64 lower-case hex digits');
  return text;
}

/** Reads a public key and returns the id and algorithm of its device. @throws RuntimeError */
async function readDevice(
  path: string,
): Promise<{ readonly deviceId: string; readonly algorithm: DeviceAlgorithm }> {
  if ((await stat(path)).size > MAX_KEY_BYTES)
    throw new RuntimeError(`${path} is larger than ${MAX_KEY_BYTES} bytes`);
  const key = publicKeyOf(await readFile(path));
  const algorithm = key && algorithmOf(key);
  if (key === undefined || algorithm === undefined)
    throw new RuntimeError(`${path} does not hold an Ed25519 or P-256 public key`);
  const spki = key.export({ type: 'spki', format: 'der' });
  return { deviceId: createHash('sha256').update(spki).digest('hex'), algorithm };
}

function publicKeyOf(bytes: Buffer): KeyObject | undefined {
  // Node would accept a private key and derive its public half, but a private key must stay on the device.
  const text = bytes.toString('latin1');
  if (text.includes('PRIVATE KEY')) return undefined;
  try {
    return text.includes('-----BEGIN')
      ? createPublicKey(text)
      : createPublicKey({ key: bytes, format: 'der', type: 'spki' });
  } catch {
    return undefined;
  }
}

function algorithmOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): DeviceAlgorithm | undefined {
  if (asymmetricKeyType === 'ed25519') return 'Ed25519';
  return asymmetricKeyType === 'ec' && asymmetricKeyDetails?.namedCurve === 'prime256v1'
    ? 'ES256'
    : undefined;
}
