/** Capture devices: enrolled, revoked for good, and known to every process by the log. */
import t from 'tap';
import { DEVICES_LOG, enrolmentEntry, MAX_DEVICES } from '../../src/service/domain/device.js';
import {
  Devices,
  enrolDevice,
  listDevices,
  revokeDevice,
} from '../../src/service/operations/system/devices.js';
import { AUDIT_SECRETS, MemoryLog } from './memory-log.js';
import { notFound, RestartedService } from './restarted-service.js';

const NOW = 1_767_225_600;
const idOf = (n: number) => n.toString(16).padStart(64, '0');

function setUp({ entries, stores } = new MemoryLog(DEVICES_LOG)) {
  const devices = new Devices({ stores, secrets: AUDIT_SECRETS });
  return { entries, stores, devices, deps: { stores, devices, clock: { now: () => NOW * 1000 } } };
}

t.test('a device is enrolled once, revoked from a time on, and never enrolled again', async (t) => {
  const { deps, devices, entries } = setUp();
  const [one, other] = [idOf(1), idOf(2)];
  t.strictSame(await devices.standing(one, NOW), { standing: 'unknown' });
  const device = { deviceId: one, algorithm: 'Ed25519' as const, enrolledAt: NOW };
  t.strictSame(await enrolDevice(deps, { deviceId: one, algorithm: 'Ed25519' }), { device, repeated: false });
  t.strictSame(await enrolDevice(deps, { deviceId: one }), { device, repeated: true });
  t.strictSame(await devices.standing(one, NOW), { standing: 'enrolled' });
  await enrolDevice(deps, { deviceId: other });
  t.strictSame(
    await listDevices(deps, { from: 2, limit: 10 }),
    { devices: [{ deviceId: other, enrolledAt: NOW }], deviceCount: 2 },
    'an algorithm that was not named is absent',
  );

  await t.rejects(revokeDevice(deps, { deviceId: idOf(3) }), notFound);
  const revoked = await revokeDevice(deps, { deviceId: one, from: NOW - 10 });
  t.strictSame(revoked, { ...device, revocation: { from: NOW - 10, at: NOW } });
  t.strictSame(await devices.standing(one, NOW - 11), { standing: 'enrolled' }, 'what was before stays');
  t.strictSame(await devices.standing(one, NOW - 10), { standing: 'revoked', revokedFrom: NOW - 10 });
  t.strictSame(
    await revokeDevice(deps, { deviceId: one, from: NOW }),
    revoked,
    'a later time changes nothing',
  );
  t.match(await revokeDevice(deps, { deviceId: one, from: NOW - 20 }), { revocation: { from: NOW - 20 } });
  await t.rejects(enrolDevice(deps, { deviceId: one }), { code: 'conflict', reason: 'device_revoked' });
  t.match(await revokeDevice(deps, { deviceId: other }), { revocation: { from: NOW } }, 'now by default');
  t.strictSame(
    entries.map(({ action, subjects }) => [action, ...subjects]),
    [
      ['device_enrolled', one, 'Ed25519'],
      ['device_enrolled', other],
      ['device_revoked', one, String(NOW - 10)],
      ['device_revoked', one, String(NOW - 20)],
      ['device_revoked', other, String(NOW)],
    ],
    'ids and times alone',
  );
});

t.test('another process knows of a revocation, and an altered log stops both', async (t) => {
  const log = new MemoryLog(DEVICES_LOG);
  const here = setUp(log);
  const there = setUp(log);
  await enrolDevice(here.deps, { deviceId: idOf(1) });
  t.strictSame(await there.devices.standing(idOf(1), NOW), { standing: 'enrolled' });
  await revokeDevice(there.deps, { deviceId: idOf(1) });
  await t.rejects(enrolDevice(here.deps, { deviceId: idOf(1) }), {
    code: 'conflict',
    reason: 'device_revoked',
  });
  t.strictSame((await here.devices.standing(idOf(1), NOW)).standing, 'revoked');

  await enrolDevice(here.deps, { deviceId: idOf(2) });
  log.entries[2] = { ...log.entries[2]!, subjects: [idOf(3)] };
  const unsound = { code: 'unavailable', reason: 'store_unavailable' };
  await t.rejects(there.devices.refresh(), unsound);
  await t.rejects(setUp(log).devices.standing(idOf(1), NOW), unsound, 'nor does a new process believe it');
});

t.test('of enrolments of one device at once the first holds, and an installation has a bound', async (t) => {
  const log = new MemoryLog(DEVICES_LOG);
  await log.stores.appendAudit(enrolmentEntry(idOf(1), 'ES256', NOW));
  await log.stores.appendAudit(enrolmentEntry(idOf(1), 'Ed25519', NOW + 1));
  for (let i = 2; i < MAX_DEVICES; i += 1)
    await log.stores.appendAudit(enrolmentEntry(idOf(i), undefined, NOW));
  const { deps, devices } = setUp(log);
  const { deviceCount, devices: page } = await listDevices(deps, { from: 1, limit: 2 });
  t.equal(deviceCount, MAX_DEVICES - 1);
  t.match(page, [{ algorithm: 'ES256', enrolledAt: NOW }, { deviceId: idOf(2) }]);
  await enrolDevice(deps, { deviceId: idOf(MAX_DEVICES) });
  await t.rejects(enrolDevice(deps, { deviceId: idOf(MAX_DEVICES + 1) }), {
    code: 'conflict',
    reason: 'devices_full',
  });
  t.strictSame(await devices.standing(idOf(MAX_DEVICES), NOW), { standing: 'enrolled' });
});

t.test('devices outlive a restart of the service, and their log is read like a partner’s', async (t) => {
  const house = await RestartedService.start();
  t.teardown(() => house.stop());
  const deviceId = idOf(9);
  t.strictSame(await house.operator.listDevices({ from: 1, limit: 10 }), { devices: [], deviceCount: 0 });
  await house.operator.enrolDevice({ deviceId, algorithm: 'Ed25519' });
  await house.restart();
  t.match(await house.operator.revokeDevice({ deviceId }), { deviceId, algorithm: 'Ed25519' });
  const { devices } = await house.operator.listDevices({ from: 1, limit: 10 });
  t.match(devices, [{ deviceId, revocation: { from: house.seconds() } }]);
  t.match(await house.operator.readAudit({ partnerId: DEVICES_LOG, fromSequence: 1, limit: 10 }), [
    { action: 'device_enrolled' },
    { action: 'device_revoked' },
  ]);
  t.match(await house.operator.verifyAudit({ partnerId: DEVICES_LOG }), { ok: true, entries: 2 });
});
