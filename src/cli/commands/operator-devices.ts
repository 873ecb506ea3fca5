import { createHash, createPublicKey, type KeyObject } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { defined } from '../../core/domain/defined.js';
import type { DeviceAlgorithm } from '../../witness/domain/trace.js';
import { defineCommand, EXIT, RuntimeError, UsageError } from '../command.js';
import type { DeviceEntry } from '../operator-client.js';
import { formatTime, printable, type Terminal } from '../terminal.js';
import { parseTime } from '../time-option.js';
import { OPERATOR_DETAILS, withOperator } from './operator-accounts.js';

const MAX_KEY_BYTES = 4096;
const DEVICE_ID = /^[0-9a-f]{64}$/;
const JSON_OPTION = { help: 'print the device as one line of JSON' } as const;

export const listDevices = defineCommand({
  name: 'operator devices list',
  service: 'operator',
  summary: 'List the capture devices in the order of enrolment',
  details: OPERATOR_DETAILS,
  operands: [],
  options: {
    from: { value: 'n', range: [1, 1_000_000], help: 'number of the first device to list (1)' },
    limit: { value: 'n', range: [1, 1000], help: 'maximum number of devices, 1 to 1000 (100)' },
    json: { help: 'print one line of JSON per device' },
  },
  async run(_operands, options, context) {
    const { from = 1, limit = 100 } = options;
    for (const device of await withOperator(context, (client) => client.listDevices({ from, limit })))
      show(device, options.json, context.terminal);
    return EXIT.good;
  },
});

export const enrolDevice = defineCommand({
  name: 'operator devices enrol',
  service: 'operator',
  summary: 'Enrol a capture device by its public key or its id',
  details: [
    'The id of a device is the SHA-256 of its public key. The service stores only the id. A revoked device',
    'cannot be enrolled again: create a new key on it.',
    '',
    ...OPERATOR_DETAILS,
  ],
  operands: [],
  options: {
    key: { value: 'file', help: 'public key of the device, PEM or DER' },
    device: { value: 'deviceId', help: 'id of the device, instead of --key: 64 hex digits' },
    json: JSON_OPTION,
  },
  async run(_operands, options, context) {
    if ((options.key === undefined) === (options.device === undefined))
      throw new UsageError('give either --key or --device');
    const request =
      options.key === undefined ? { deviceId: idOf(options.device!) } : await readDevice(options.key);
    show(
      await withOperator(context, (client) => client.enrolDevice(request)),
      options.json,
      context.terminal,
    );
    return EXIT.good;
  },
});

export const revokeDevice = defineCommand({
  name: 'operator devices revoke',
  service: 'operator',
  summary: 'Revoke a capture device permanently, from a given time on',
  details: [
    'A trace used for issuing after that time does not count as evidence of an enrolled device. The report',
    'of a proof issued before that time says that its device was revoked later.',
    '',
    ...OPERATOR_DETAILS,
  ],
  operands: [],
  options: {
    device: { value: 'deviceId', required: true, help: 'device id: 64 hex digits' },
    from: {
      value: 'time',
      help: 'when the key may have been lost: unix seconds or 2026-01-31T12:00:00Z (now)',
    },
    json: JSON_OPTION,
  },
  async run(_operands, options, context) {
    const request = defined({
      from: options.from === undefined ? undefined : parseTime('--from', options.from),
    });
    const deviceId = idOf(options.device);
    show(
      await withOperator(context, (client) => client.revokeDevice(deviceId, request)),
      options.json,
      context.terminal,
    );
    return EXIT.good;
  },
});

function show(device: DeviceEntry, json: boolean, terminal: Terminal): void {
  if (json) return terminal.printJson(device);
  const { deviceId, algorithm, enrolledAt, revocation } = device;
  const state = revocation === undefined ? 'enrolled' : `revoked from ${formatTime(revocation.from)}`;
  terminal.print(
    printable(`${deviceId}  ${(algorithm ?? '').padEnd(7)}  since ${formatTime(enrolledAt)}  ${state}`),
  );
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
