import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32c } from '../../../core/codec/crc32c.js';
import { StoreOpenError } from './open-error.js';

/**
 * Looks for damage in a directory before LevelDB opens it. LevelDB drops without a word what it cannot read
 * of its log, and starts a new store where its CURRENT file is missing. Either would turn damage into the
 * result that a proof does not exist. Logs hold what was not yet moved into tables: at most a few write
 * buffers, some tens of megabytes.
 *
 * @throws StoreOpenError `damaged`
 */
export async function checkDirectory(directory: string): Promise<void> {
  const names = await readdir(directory);
  if (!names.includes('CURRENT') && names.some((name) => /\.(log|ldb|sst)$/.test(name))) {
    throw new StoreOpenError('damaged', `The store in ${directory} has lost its CURRENT file.`);
  }
  for (const name of names.filter((name) => name.endsWith('.log'))) {
    const log = await readFile(join(directory, name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return Buffer.alloc(0);
      throw error;
    });
    const offset = findDamage(log);
    if (offset !== undefined) {
      throw new StoreOpenError(
        'damaged',
        `The log ${name} of the store in ${directory} is damaged at byte ${offset}: acknowledged writes after it would be lost.`,
      );
    }
  }
}

const BLOCK_BYTES = 32_768;
const HEADER_BYTES = 7;
const FULL = 1;
const FIRST = 2;
const LAST = 4;

/**
 * Reads a log of LevelDB 1.20, which classic-level brings (doc/log_format.md): blocks of 32 KiB; records of
 * masked CRC-32C, length, type, data; no header in the last six bytes of a block. A process that dies leaves
 * at most one batch unfinished, at the end. So an unreadable record is damage exactly when another batch
 * begins after it.
 *
 * @returns offset of the first unreadable record that a later batch follows
 */
export function findDamage(log: Uint8Array): number | undefined {
  const view = new DataView(log.buffer, log.byteOffset, log.byteLength);
  let bad: number | undefined;
  let offset = 0;
  while (offset + HEADER_BYTES <= log.length) {
    const left = BLOCK_BYTES - (offset % BLOCK_BYTES);
    if (left < HEADER_BYTES) {
      offset += left;
      continue;
    }
    const length = view.getUint16(offset + 4, true);
    const type = log[offset + 6]!;
    const end = offset + HEADER_BYTES + length;
    const readable =
      type >= FULL &&
      type <= LAST &&
      HEADER_BYTES + length <= left &&
      end <= log.length &&
      unmask(view.getUint32(offset, true)) === crc32c(log.subarray(offset + 6, end));
    if (readable && bad !== undefined && (type === FULL || type === FIRST)) return bad;
    if (!readable) bad ??= offset;
    // After a length that cannot be true the next block is the only place to go on from.
    offset = HEADER_BYTES + length > left || (!readable && length === 0) ? offset + left : end;
  }
  return undefined;
}

function unmask(masked: number): number {
  const rotated = (masked - 0xa282ead8) >>> 0;
  return ((rotated >>> 17) | (rotated << 15)) >>> 0;
}
