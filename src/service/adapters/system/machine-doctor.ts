import { X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type ValidityWarning, validityWarning } from '../../../core/domain/validity.js';
import { isOneDevice } from '../../../core/files/device.js';
import { ifPresent } from '../../../core/files/if-present.js';
import { checked, passed, type ServerCheck, unchecked } from '../../domain/server-check.js';
import { CLOCK_MARK_FILE } from './clock-mark.js';
import { readFreeSpace } from './free-space.js';

export interface MachineParts {
  readonly dataDirectory: string;
  readonly journalDirectory: string;
  /** The directory of the content keys. Absent if they are in a bucket. */
  readonly contentKeysDirectory?: string;
  /** The directory of the second copy of the content keys. */
  readonly mirrorDirectory?: string;
  /** The names of files of the data directory that hold secrets. */
  readonly secretFiles: readonly string[];
  /** The PEM file of the partner listener's certificate. */
  readonly certificate?: string;
  /** The present time in milliseconds. */
  readonly now: number;
}

/** The share of free bytes or inodes below which a disk counts as nearly full. */
const LEAST_FREE = 0.1;
/** The warnings about a certificate that need an act now. */
const URGENT: ReadonlySet<ValidityWarning | undefined> = new Set(['not_begun', '7_days', 'expired']);
/** The most milliseconds that the clock may be earlier than the latest time that a process saw. */
const CLOCK_SLACK_MS = 2000;
/** Permissions of the group and of all other users. */
const OTHERS = 0o077;

/** Checks this machine as a place of the service: disk, permissions, clock, certificate and content keys. */
export async function examineMachine(parts: MachineParts): Promise<readonly ServerCheck[]> {
  const { dataDirectory, certificate, now } = parts;
  if ((await ifPresent(stat(dataDirectory))) === undefined)
    return [
      unchecked(
        'machine.data_directory',
        'the data directory of the service',
        `${dataDirectory} does not exist: run this command on the machine of the service, with its settings`,
      ),
    ];
  return [
    ...(await examineDisk(dataDirectory)),
    await examineModes(parts),
    await examineClock(dataDirectory, now),
    ...(certificate === undefined ? [] : [await examineCertificate(certificate, now)]),
    ...(await examineKeys(parts)),
  ];
}

async function examineDisk(directory: string): Promise<readonly ServerCheck[]> {
  const free = await readFreeSpace(directory);
  const inodes = { name: 'machine.inodes', wanted: 'a tenth or more is free' };
  return [
    checked(
      'machine.disk',
      {
        found: `${percent(free.bytes)} of the disk of ${directory} is free, ${Math.floor(free.freeBytes / 1_000_000)} MB`,
        wanted: 'a tenth or more is free',
      },
      'warn',
      free.bytes >= LEAST_FREE ? undefined : 'when the disk is full, every call that writes fails',
    ),
    free.inodes === undefined
      ? unchecked(inodes.name, inodes.wanted, 'the file system reports no number of inodes')
      : checked(
          inodes.name,
          { found: `${percent(free.inodes)} of the inodes are free`, wanted: inodes.wanted },
          'warn',
          free.inodes >= LEAST_FREE ? undefined : 'without inodes no proof can be issued: each takes two',
        ),
  ];
}

async function examineModes({
  dataDirectory,
  journalDirectory,
  contentKeysDirectory,
  secretFiles,
}: MachineParts): Promise<ServerCheck> {
  const name = 'machine.modes';
  const wanted = 'no permissions for other users';
  if (process.platform === 'win32') return unchecked(name, wanted, 'Windows has no modes');
  const paths = [
    dataDirectory,
    journalDirectory,
    ...(contentKeysDirectory === undefined ? [] : [contentKeysDirectory]),
    ...secretFiles.map((file) => join(dataDirectory, file)),
  ];
  const open: string[] = [];
  for (const path of paths) {
    const found = await ifPresent(stat(path));
    if (found !== undefined && (found.mode & OTHERS) !== 0)
      open.push(`${path} (${(found.mode & 0o777).toString(8)})`);
  }
  return open.length === 0
    ? passed(name, 'only the owner has permissions', wanted)
    : checked(
        name,
        { found: open.join(', '), wanted },
        'warn',
        'other users of this machine can read secrets',
      );
}

async function examineClock(directory: string, now: number): Promise<ServerCheck> {
  const name = 'machine.clock';
  const wanted = 'at least the latest time that the service saw';
  const mark = Number((await ifPresent(readFile(join(directory, CLOCK_MARK_FILE), 'utf8'))) ?? '0');
  if (!(mark > 0)) return unchecked(name, wanted, 'no process of the service has noted a time');
  const lateMs = mark - now;
  return checked(
    name,
    {
      found: lateMs > CLOCK_SLACK_MS ? `${Math.round(lateMs / 1000)} s late` : 'not late',
      wanted,
    },
    'warn',
    lateMs > CLOCK_SLACK_MS
      ? 'the time of the service does not move until the clock has caught up'
      : undefined,
  );
}

async function examineCertificate(path: string, now: number): Promise<ServerCheck> {
  const name = 'machine.certificate';
  const wanted = 'valid now and for the next seven days';
  try {
    const { validFrom, validTo } = new X509Certificate(await readFile(path));
    const until = Date.parse(validTo);
    const validity = { notBefore: Date.parse(validFrom) / 1000, notAfter: until / 1000 };
    return checked(
      name,
      { found: `valid until ${new Date(until).toISOString().slice(0, 10)}`, wanted },
      'warn',
      URGENT.has(validityWarning(validity, now / 1000))
        ? 'partners cannot connect while it is not valid'
        : undefined,
    );
  } catch (error) {
    const { code = 'not a certificate' } = error as NodeJS.ErrnoException;
    return checked(
      name,
      { found: `unusable (${code})`, wanted },
      'warn',
      'the service does not start with it',
    );
  }
}

async function examineKeys({
  dataDirectory,
  contentKeysDirectory,
  mirrorDirectory,
}: MachineParts): Promise<readonly ServerCheck[]> {
  const store = join(dataDirectory, 'store');
  const isThere = async (path: string): Promise<boolean> => (await ifPresent(stat(path))) !== undefined;
  if (contentKeysDirectory === undefined || !(await isThere(store)) || !(await isThere(contentKeysDirectory)))
    return [];
  // One copy on another device is enough.
  const isBeside =
    (await isOneDevice(contentKeysDirectory, store)) &&
    (mirrorDirectory === undefined ||
      !(await isThere(mirrorDirectory)) ||
      (await isOneDevice(mirrorDirectory, store)));
  return [
    checked(
      'machine.content_keys',
      {
        found: isBeside ? 'on the device of the store' : 'on another device than the store',
        wanted: 'a second disk (TAKEMARK_MIRROR_DIR)',
      },
      'warn',
      isBeside ? 'the loss or a copy of the device concerns both keys and content' : undefined,
    ),
  ];
}

function percent(share: number): string {
  return `${Math.floor(share * 100)} %`;
}
