import { DomainError } from '../../../core/domain/errors.js';
import type { DeviceAlgorithm, DeviceId } from '../../../witness/domain/trace.js';
import type { ResultOf } from '../../contract/results.js';
import {
  DEVICES_LOG,
  type Device,
  deviceRevocationEntry,
  enrolmentEntry,
  MAX_DEVICES,
  type StandingOfDevice,
  standingOf,
  takeDeviceEntry,
} from '../../domain/device.js';
import type { Secrets } from '../../ports/secrets.js';
import type { AuditStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import { LogFollower } from './log-follower.js';

/** The enrolled devices, as the log of devices records them. */
export class Devices {
  readonly #log: LogFollower;
  /** The devices by id, in the order of enrolment. */
  readonly #devices = new Map<DeviceId, Device>();

  constructor(deps: { readonly stores: AuditStore; readonly secrets: Secrets }) {
    this.#log = new LogFollower(deps, DEVICES_LOG, (entry) => takeDeviceEntry(this.#devices, entry));
  }

  /**
   * Returns the standing of a device at a time, by the current log. A revocation that was recorded after that
   * time counts too.
   * @param at unix seconds
   * @throws DomainError `unavailable` / `store_unavailable` when the log cannot be read, or is damaged
   */
  async standing(deviceId: DeviceId, at: number): Promise<StandingOfDevice> {
    await this.#log.keepUp();
    return standingOf(this.#devices.get(deviceId), at);
  }

  get(deviceId: DeviceId): Device | undefined {
    return this.#devices.get(deviceId);
  }

  get count(): number {
    return this.#devices.size;
  }

  /**
   * Returns a page of the devices.
   * @param from position of the first device, counted from 1
   */
  list(from: number, limit: number): readonly Device[] {
    return [...this.#devices.values()].slice(from - 1, from - 1 + limit);
  }

  /** Reads the log at least up to its end at the time of the call. */
  refresh(): Promise<void> {
    return this.#log.refresh();
  }
}

export interface DevicesDeps {
  readonly stores: AuditStore;
  readonly devices: Devices;
  readonly clock: Clock;
}

/** Returns a page of the devices in the order of enrolment, and the number of all devices. */
export async function listDevices(
  { devices }: Pick<DevicesDeps, 'devices'>,
  { from, limit }: { readonly from: number; readonly limit: number },
): Promise<ResultOf<'listDevices'>> {
  await devices.refresh();
  return { devices: devices.list(from, limit), deviceCount: devices.count };
}

/**
 * Enrols a device. Repeating the call changes nothing.
 * @throws DomainError `conflict` / `device_revoked`: a revoked device cannot be enrolled again, and its owner
 * creates a new key. `conflict` / `devices_full`
 */
export async function enrolDevice(
  { stores, devices, clock }: DevicesDeps,
  { deviceId, algorithm }: { readonly deviceId: DeviceId; readonly algorithm?: DeviceAlgorithm },
): Promise<{ readonly device: Device; readonly repeated: boolean }> {
  await devices.refresh();
  const known = devices.get(deviceId);
  if (known?.revocation !== undefined)
    throw new DomainError('conflict', 'This device was revoked. Enrol a device with a new key.', {
      reason: 'device_revoked',
    });
  if (known !== undefined) return { device: known, repeated: true };
  if (devices.count >= MAX_DEVICES)
    throw new DomainError('conflict', `An installation can have at most ${MAX_DEVICES} devices.`, {
      reason: 'devices_full',
    });
  await stores.appendAudit(enrolmentEntry(deviceId, algorithm, Math.floor(clock.now() / 1000)));
  await devices.refresh();
  return { device: devices.get(deviceId)!, repeated: false };
}

/**
 * Revokes a device permanently, from a time on. A later call may set an earlier time. A later time changes
 * nothing.
 * @throws DomainError `not_found` for a device that was never enrolled
 */
export async function revokeDevice(
  { stores, devices, clock }: DevicesDeps,
  { deviceId, from }: { readonly deviceId: DeviceId; readonly from?: number },
): Promise<Device> {
  await devices.refresh();
  const known = devices.get(deviceId);
  if (known === undefined) throw new DomainError('not_found', 'There is no such device.');
  const at = Math.floor(clock.now() / 1000);
  const revokedFrom = from ?? at;
  if (known.revocation !== undefined && known.revocation.from <= revokedFrom) return known;
  await stores.appendAudit(deviceRevocationEntry(deviceId, revokedFrom, at));
  await devices.refresh();
  return devices.get(deviceId)!;
}
