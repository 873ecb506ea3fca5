import type { AskedDigest, Client, Identification } from '../../client/index.js';
import { type Context, EXIT, RuntimeError } from '../command.js';
import { withPartner } from '../commands/partner-account.js';
import { errorTextOf } from '../file-errors.js';
import type { FileKit } from '../file-kit.js';
import { openLocalFile } from '../local-file.js';
import { printable } from '../terminal.js';
import { readDigestList } from './digest-list.js';
import { findAudio } from './find-audio.js';

type Matches = Identification['matches'];

/** A file, and the digests that are asked for it. */
interface AskedFile {
  readonly name: string;
  readonly digests: readonly AskedDigest[];
}

/** The types of matches, strongest first. A type that this version does not know comes last. */
const STRENGTH: readonly string[] = ['exact_file', 'bound_audio', 'original_file', 'same_samples'];

/** Identifies the audio files of a directory by digests that are computed on this machine. No audio is sent. */
export async function identifyFolder(path: string, json: boolean, context: Context): Promise<number> {
  const { openFileKit, signal, terminal } = context;
  let failed = 0;
  let skipped = 0;
  const kit = await openFileKit();
  try {
    async function* asked(): AsyncGenerator<AskedFile> {
      for await (const found of findAudio([path], { pairs: false, followLinks: false })) {
        if ('passedOver' in found) {
          skipped += 1;
          continue;
        }
        try {
          if ('problem' in found) throw new RuntimeError(found.problem);
          yield { name: found.path, digests: await digestsOf(kit, found.path, found.place, signal) };
        } catch (error) {
          signal.throwIfAborted();
          failed += 1;
          terminal.note(printable(`${found.path}: ${errorTextOf(found.path, error)}`));
        }
      }
    }
    const { files, unknown } = await identifyAll(asked(), json, context);
    if (skipped > 0) terminal.note(`${skipped} other ${skipped === 1 ? 'file' : 'files'} skipped`);
    if (files + failed === 0) throw new RuntimeError('no audio files found');
    if (failed > 0) return EXIT.runtimeError;
    return unknown === 0 ? EXIT.good : EXIT.notGood;
  } finally {
    await kit.close();
  }
}

/** Identifies the digests of a list. */
export async function identifyList(path: string, json: boolean, context: Context): Promise<number> {
  const listed = await readDigestList(path);
  const asked = listed.map(({ name, ...digest }) => ({ name, digests: [digest] }));
  const { unknown } = await identifyAll(asked, json, context);
  return unknown === 0 ? EXIT.good : EXIT.notGood;
}

async function digestsOf(
  kit: FileKit,
  path: string,
  place: Buffer | undefined,
  signal: AbortSignal,
): Promise<readonly AskedDigest[]> {
  const file = await openLocalFile(path, signal, place);
  try {
    const digests = await kit.digests(file.read());
    return (['file', 'bound', 'samples'] as const).flatMap((of) => {
      const sha256 = digests[of];
      return sha256 === undefined ? [] : [{ sha256, of }];
    });
  } finally {
    await file.close();
  }
}

/**
 * Asks for all files, in as few calls as possible, and prints each result.
 * @returns how many files there are, and how many of them have no match
 */
async function identifyAll(
  asked: Iterable<AskedFile> | AsyncIterable<AskedFile>,
  json: boolean,
  context: Context,
): Promise<{ readonly files: number; readonly unknown: number }> {
  const { terminal, signal } = context;
  const counts = { files: 0, unknown: 0 };
  const waiting: AskedFile[] = [];
  async function* digests(): AsyncGenerator<AskedDigest> {
    for await (const file of asked) {
      waiting.push(file);
      yield* file.digests;
    }
  }
  const ask = async (client: Client): Promise<void> => {
    let found: Matches[] = [];
    for await (const { matches } of client.identifyDigests(digests(), { signal })) {
      found.push(matches);
      const [file] = waiting;
      if (file === undefined || found.length < file.digests.length) continue;
      waiting.shift();
      const merged = strongest(found.flat());
      found = [];
      counts.files += 1;
      if (merged.length === 0) counts.unknown += 1;
      if (json) terminal.printJson({ file: file.name, digests: file.digests, matches: merged });
      else if (merged.length === 0) terminal.print(printable(`${file.name}  no match`));
      else
        for (const { proofId, type, confidence } of merged)
          terminal.print(printable(`${file.name}  ${proofId}  ${type}  ${confidence}`));
    }
  };
  await withPartner(context, ask);
  return counts;
}

/** Returns one match for each proof, the strongest first. */
function strongest(matches: Matches): Matches {
  const rank = ({ type }: Matches[number]): number => {
    const at = STRENGTH.indexOf(type);
    return at === -1 ? STRENGTH.length : at;
  };
  const sorted = matches.toSorted((a, b) => rank(a) - rank(b));
  const first = new Map<string, Matches[number]>();
  for (const match of sorted) if (!first.has(match.proofId)) first.set(match.proofId, match);
  return [...first.values()];
}
