/** Capture devices, as the operator enrols and revokes them: an append-only log of ids, with no names in it. */
import type { AuditDraft, AuditEntry } from './audit.js';
import { defined } from './defined.js';
import { DEVICE_ALGORITHMS, type DeviceAlgorithm, type DeviceId, type DeviceStanding } from './trace.js';

/** Name of the audit log of devices: no partner's id looks like it. */
export const DEVICES_LOG = 'devices';

/** Most devices of an installation. Every process holds them all, some 200 bytes each. */
export const MAX_DEVICES = 100_000;

/** A device that was enrolled. Times in unix seconds. */
export interface Device {
  readonly deviceId: DeviceId;
  readonly algorithm?: DeviceAlgorithm;
  readonly enrolledAt: number;
  /** Time from which the device is not believed, and time at which the operator said so. */
  readonly revocation?: { readonly from: number; readonly at: number };
}

/** Standing of a device at a time. */
export interface StandingOfDevice {
  readonly standing: DeviceStanding;
  /** Unix seconds; of a revoked device. */
  readonly revokedFrom?: number;
}

export function enrolmentEntry(
  deviceId: DeviceId,
  algorithm: DeviceAlgorithm | undefined,
  at: number,
): AuditDraft {
  const subjects = algorithm === undefined ? [deviceId] : [deviceId, algorithm];
  return { partnerId: DEVICES_LOG, action: 'device_enrolled', at, actor: 'operator', subjects };
}

export function deviceRevocationEntry(deviceId: DeviceId, from: number, at: number): AuditDraft {
  return {
    partnerId: DEVICES_LOG,
    action: 'device_revoked',
    at,
    actor: 'operator',
    subjects: [deviceId, String(from)],
  };
}

/**
 * Takes an entry of the log of devices. The first enrolment holds, and of revocations the earliest time: no
 * later entry makes a revoked device good.
 */
export function takeDeviceEntry(
  devices: Map<DeviceId, Device>,
  { action, subjects, at }: Pick<AuditEntry, 'action' | 'subjects' | 'at'>,
): void {
  const [deviceId, word] = subjects;
  if (deviceId === undefined) return;
  const known = devices.get(deviceId);
  if (action === 'device_enrolled' && known === undefined) {
    const algorithm = DEVICE_ALGORITHMS.find((name) => name === word);
    devices.set(deviceId, defined({ deviceId, algorithm, enrolledAt: at }));
  }
  const from = Number(word);
  if (
    action === 'device_revoked' &&
    known !== undefined &&
    !(known.revocation && known.revocation.from <= from)
  )
    devices.set(deviceId, { ...known, revocation: { from, at } });
}

/** @param at unix seconds */
export function standingOf(device: Device | undefined, at: number): StandingOfDevice {
  if (device === undefined) return { standing: 'unknown' };
  const { revocation } = device;
  return revocation !== undefined && at >= revocation.from
    ? { standing: 'revoked', revokedFrom: revocation.from }
    : { standing: 'enrolled' };
}
