/** Capture devices, which the operator enrols and revokes: an append-only log of ids without names. */

import { defined } from '../../core/domain/defined.js';
import {
  DEVICE_ALGORITHMS,
  type DeviceAlgorithm,
  type DeviceId,
  type DeviceStanding,
} from '../../witness/domain/trace.js';
import type { AuditDraft, AuditEntry } from './audit.js';

/** The name of the audit log of devices. It cannot be a partner's id. */
export const DEVICES_LOG = 'devices';

/** The most devices of an installation. Every process keeps all of them in memory, about 200 bytes each. */
export const MAX_DEVICES = 100_000;

/** An enrolled device. Times are in unix seconds. */
export interface Device {
  readonly deviceId: DeviceId;
  readonly algorithm?: DeviceAlgorithm;
  readonly enrolledAt: number;
  /** The start of the revocation (`from`), and when the operator recorded it (`at`). */
  readonly revocation?: { readonly from: number; readonly at: number };
}

/** The standing of a device at a given time. */
export interface StandingOfDevice {
  readonly standing: DeviceStanding;
  /** The start of the revocation in unix seconds. Present for a revoked device. */
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
 * Applies an entry of the log of devices. The first enrolment wins. The earliest revocation time wins, and no
 * later entry reinstates a revoked device.
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

/** Returns the standing of a device. @param at unix seconds */
export function standingOf(device: Device | undefined, at: number): StandingOfDevice {
  if (device === undefined) return { standing: 'unknown' };
  const { revocation } = device;
  return revocation !== undefined && at >= revocation.from
    ? { standing: 'revoked', revokedFrom: revocation.from }
    : { standing: 'enrolled' };
}
