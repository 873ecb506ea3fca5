import { createHash, createPublicKey, type KeyObject } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { defined } from '../../domain/defined.js';
import { defineCommand, EXIT, RuntimeError, UsageError } from '../command.js';
import type { DeviceEntry } from '../operator-client.js';
import { formatTime, printable, type Terminal } from '../terminal.js';
import { parseTime } from '../time-option.js';
import { OPERATOR_DETAILS, withOperator } from './operator-accounts.js';

const MAX_KEY_BYTES = 4096;
const DEVICE_ID = /^[0-9a-f]{64}$/;
const JSON_OPTION = { help: 'the device as one line of JSON' } as const;

export const listDevices = defineCommand({
  name: 'operator devices list',
  service: 'operator',
  summary: 'List the capture devices in the order of enrolment',
  details: OPERATOR_DETAILS,
  operands: [],
  options: {
    from: { value: 'n', range: [1, 1_000_000], help: 'the first one (1)' },
    limit: { value: 'n', range: [1, 1000], help: 'devices at most, 1 to 1000 (100)' },
    json: { help: 'one line of JSON for each device' },
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
  summary: 'Enrol a capture device, by its public key or by its id',
  details: [
    'The id of a device is the SHA-256 of its public key. The key stays on the device; the service',
    'keeps the id alone. A device that was revoked is not enrolled again: it makes a new key.',
    '',
    ...OPERATOR_DETAILS,
  ],
  operands: [],
  options: {
    key: { value: 'file', help: "the device's public key, PEM or DER" },
    device: { value: 'deviceId', help: 'or its id: 64 hex digits' },
    json: JSON_OPTION,
  },
  async run(_operands, options, context) {
    if ((options.key === undefined) === (options.device === undefined))
      throw new UsageError('one of --key and --device is needed');
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
  summary: 'Revoke a capture device from a time on, for good',
  details: [
    'A trace that is issued from then on is not evidence of an enrolled device; the report of a proof',
    'that was issued with one before says that its device was revoked since.',
    '',
    ...OPERATOR_DETAILS,
  ],
  operands: [],
  options: {
    device: { value: 'deviceId', required: true, help: 'the device: 64 hex digits' },
    from: {
      value: 'time',
      help: 'when its key may have been lost: unix seconds, or as 2026-01-31T12:00:00Z (now)',
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
  if (!DEVICE_ID.test(text)) throw new UsageError('--device must be 64 hex digits, in lower case');
  return text;
}

/** Id and algorithm of a public key's device. @throws RuntimeError */
async function readDevice(path: string): Promise<{ readonly deviceId: string; readonly algorithm: string }> {
  if ((await stat(path)).size > MAX_KEY_BYTES)
    throw new RuntimeError(`${path} is larger than ${MAX_KEY_BYTES} bytes`);
  const key = publicKeyOf(await readFile(path));
  const algorithm = key && algorithmOf(key);
  if (key === undefined || algorithm === undefined)
    throw new RuntimeError(`${path} holds no public key of Ed25519 or P-256`);
  const spki = key.export({ type: 'spki', format: 'der' });
  return { deviceId: createHash('sha256').update(spki).digest('hex'), algorithm };
}

function publicKeyOf(bytes: Buffer): KeyObject | undefined {
  // A private key would be taken too, and its public half derived: it has no business on this machine.
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

function algorithmOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string | undefined {
  if (asymmetricKeyType === 'ed25519') return 'Ed25519';
  return asymmetricKeyType === 'ec' && asymmetricKeyDetails?.namedCurve === 'prime256v1'
    ? 'ES256'
    : undefined;
}
