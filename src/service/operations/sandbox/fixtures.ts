import type { StructureBreak } from '../../../core/domain/findings.js';
import { NAMES_THIS_SERVICE } from '../../../core/domain/parsed-credential.js';
import type { DecisionReason, ReasonOf } from '../../../core/domain/reference/reasons.js';
import type { Verdict } from '../../../core/domain/verdicts.js';
import { decide } from '../../domain/decision.js';
import type { DecisionEnvelope } from '../../domain/verification.js';
import type { MatchType } from '../verification/find-matches.js';
import { flipped, SIDECAR_EDITS, SIGNED_FAULTS, STORE_EDITS, storeIn, withStore } from './store-edits.js';
import { chunk, fmtChunk, id3Tag, riff } from './wave-file.js';

/** The fixtures that are signed once and registered. Every other fixture is an edit of one of them. */
export const ORIGINALS = [
  'valid',
  'valid_pair',
  'container_unknown',
  'needs_review',
  'proof_not_registered',
  'credential_not_as_issued',
  'signer_unknown',
  'sealed_by_device',
  ...SIGNED_FAULTS.map((reason) => `store_${reason}` as const),
] as const;
export type OriginalName = (typeof ORIGINALS)[number];

export interface FixtureFiles {
  readonly audio: Buffer;
  readonly sidecar?: Buffer;
}

/** The bytes of the originals. */
export type Originals = Readonly<Record<OriginalName, FixtureFiles>>;

/** A file with the result that verify returns for it. */
export interface Fixture {
  readonly name: string;
  readonly verdict: Verdict;
  readonly decision: Pick<DecisionEnvelope, 'status' | 'reasons' | 'recommendedAction' | 'credentialCarrier'>;
  /** The strongest match of an identify of the audio. Absent if the fixture does not show one. */
  readonly match?: MatchType;
  /** The file name's extension, if the audio is not WAV. */
  readonly extension?: 'mp3';
  files(originals: Originals): FixtureFiles;
}

const NO_BREAK = 'earlier versions gave this reason: the finding no longer decides a verdict';

/** The reasons of verify that have no fixture, each with its cause. */
export const REASONS_WITHOUT_FIXTURE = {
  signer_revoked: 'needs a revoked certificate, which would invalidate every proof that it signed',
  signer_not_pinned:
    'needs a certificate signed by the authority of this installation but missing from its trust list',
  header_truncated: 'a file this short has no container magic: the reason is container_unsupported',
  store_too_large: 'the RIFF reader finds such a chunk first: the reason is credential_too_large',
  extent_mismatch: 'the RIFF reader passes on the data of exactly one chunk',
  duplicate_bext: NO_BREAK,
  duplicate_fact: NO_BREAK,
  codec_unsupported: NO_BREAK,
  bext_malformed: NO_BREAK,
  bext_version_unknown: NO_BREAK,
  list_malformed: NO_BREAK,
  list_too_deep: NO_BREAK,
} as const satisfies Partial<Record<DecisionReason, string>>;

const RATE = 22_050;
const UNWRITTEN = 0xffff_ffff;

/** Returns one second of samples: a tone of 440 Hz, 16 bit, mono. */
function tone(): Buffer {
  const data = Buffer.alloc(RATE * 2);
  for (let i = 0; i < RATE; i += 1)
    data.writeInt16LE(Math.round(8000 * Math.sin((2 * Math.PI * 440 * i) / RATE)), i * 2);
  return data;
}

const FMT = fmtChunk({ sampleRate: RATE });
/** A title as a program for tags writes it. */
const TAG = Buffer.concat([Buffer.from('INFO'), chunk({ id: 'INAM', data: Buffer.from('A tagged copy\0') })]);

/** Returns the audio from which every fixture is made. */
export function plainAudio(): Buffer {
  return riff([FMT, chunk({ id: 'data', data: tone() })]);
}

/** Returns samples without a header, which start like no container. */
export function headerlessAudio(): Buffer {
  return tone();
}

/** Returns the fixtures, in the order of the verdicts. */
export function listFixtures(): readonly Fixture[] {
  return [
    { ...original('valid', 'valid', ['credential_verified'], 'embedded'), match: 'exact_file' },
    { ...original('valid_pair', 'valid', ['credential_verified'], 'sidecar'), match: 'exact_file' },
    {
      ...original('container_unknown', 'valid', ['credential_verified', 'container_unknown'], 'sidecar'),
      extension: 'mp3',
    },
    needsReview(),
    fixture(
      'audio_digest_mismatch',
      'audioChanged',
      ['audio_digest_mismatch'],
      'sidecar',
      ({ valid_pair: pair }) => ({ ...pair, audio: flipped(pair.audio, pair.audio.length >> 1) }),
    ),
    ...tamperedStores(),
    ...tamperedSidecars(),
    original('proof_not_registered', 'unregistered', ['proof_not_registered'], 'embedded'),
    original('credential_not_as_issued', 'unregistered', ['credential_not_as_issued'], 'embedded'),
    original('signer_unknown', 'unregistered', ['signer_unknown', NAMES_THIS_SERVICE], 'embedded'),
    fixture('binding_mismatch', 'unreadable', ['binding_mismatch'], 'embedded', ({ valid: { audio } }) => ({
      audio: flipped(audio, 1000),
    })),
    { ...unreadable('credential_missing', plainAudio), match: 'exact_file' },
    {
      ...fixture('same_samples', 'unreadable', ['credential_missing'], 'none', () => ({
        audio: riff([FMT, chunk({ id: 'data', data: tone() }), chunk({ id: 'LIST', data: TAG })]),
      })),
      match: 'same_samples',
    },
    unreadable('store_start_missing', () =>
      riff([FMT, chunk({ id: 'data', data: tone() }), chunk({ id: 'C2PA', data: Buffer.alloc(64) })]),
    ),
    {
      ...unreadable('container_unsupported', () => {
        // Silent frames of MPEG-1 layer III at 128 kbit/s and 44.1 kHz: 417 bytes for 1,152 samples.
        const frame = Buffer.alloc(417);
        frame.writeUInt32BE(0xfffb_9000);
        return Buffer.concat(Array.from({ length: 39 }, () => frame));
      }),
      extension: 'mp3',
    },
    fixture('sidecar_empty', 'unreadable', ['sidecar_empty'], 'none', ({ valid_pair: { audio } }) => ({
      audio,
      sidecar: Buffer.alloc(0),
    })),
    fixture(
      'sidecar_magic_missing',
      'unreadable',
      ['sidecar_magic_missing'],
      'none',
      ({ valid_pair: { audio } }) => ({ audio, sidecar: Buffer.from('not a sidecar') }),
    ),
    ...structureFaults(),
    original('sealed_by_device', 'local_seal', ['sealed_by_device'], 'embedded'),
  ];
}

type Carrier = DecisionEnvelope['credentialCarrier'];

function fixture(
  name: string,
  verdict: Verdict,
  reasons: readonly DecisionReason[],
  carrier: Carrier,
  files: Fixture['files'],
): Fixture {
  const { status, recommendedAction, credentialCarrier } = decide({ verdict, reasons, carrier });
  return { name, verdict, decision: { status, reasons, recommendedAction, credentialCarrier }, files };
}

function original(
  name: OriginalName,
  verdict: Verdict,
  reasons: readonly DecisionReason[],
  carrier: Carrier,
): Fixture {
  return fixture(name, verdict, reasons, carrier, (originals) => originals[name]);
}

/** Returns a valid file with contradictory answers of its creator. */
function needsReview(): Fixture {
  const made = original('needs_review', 'valid', ['credential_verified'], 'embedded');
  return {
    ...made,
    decision: {
      ...made.decision,
      status: 'needs_review',
      reasons: [...made.decision.reasons, 'source_evidence_needs_review'],
      recommendedAction: 'review',
    },
  };
}

function unreadable(reason: ReasonOf<'unreadable'>, audio: () => Buffer): Fixture {
  return fixture(reason, 'unreadable', [reason], 'none', () => ({ audio: audio() }));
}

function entriesOf<Key extends string, Value>(
  members: Readonly<Partial<Record<Key, Value>>>,
): readonly (readonly [Key, Value])[] {
  return Object.entries(members) as [Key, Value][];
}

function tamperedStores(): Fixture[] {
  return [
    ...entriesOf(STORE_EDITS).map(([reason, edit]) =>
      fixture(`store_${reason}`, 'tampered', [reason], 'embedded', ({ valid: { audio } }) => ({
        audio: withStore(audio, edit(storeIn(audio))),
      })),
    ),
    ...SIGNED_FAULTS.map((reason) => original(`store_${reason}`, 'tampered', [reason], 'embedded')),
  ];
}

function tamperedSidecars(): Fixture[] {
  return entriesOf(SIDECAR_EDITS).map(([reason, edit]) =>
    fixture(
      reason.startsWith('sidecar_') ? reason : `sidecar_${reason}`,
      'tampered',
      [reason],
      'sidecar',
      ({ valid_pair: { audio, sidecar } }) => ({ audio, sidecar: edit(sidecar!) }),
    ),
  );
}

/** Returns a file for each break that the RIFF reader finds, in the order in which the reader reports them. */
function structureFaults(): Fixture[] {
  const data = chunk({ id: 'data', data: tone() });
  const junk = (bytes: number, lie: { size?: number; pad?: number | null } = {}) =>
    chunk({ id: 'JUNK', data: Buffer.alloc(bytes), ...lie });
  const named = (id: string) => chunk({ id, data: Buffer.alloc(4) });
  const list = (member: Uint8Array) =>
    chunk({ id: 'LIST', data: Buffer.concat([Buffer.from('INFO'), member]) });
  const format = (fill: (body: Buffer) => void, bytes = 16) => {
    const body = Buffer.alloc(bytes);
    FMT.copy(body, 0, 8);
    fill(body);
    return chunk({ id: 'fmt ', data: body });
  };
  const ds64 = (riffSize: number, dataSize: number, bytes = 28) => {
    const body = Buffer.alloc(28);
    body.writeBigUInt64LE(BigInt(riffSize), 0);
    body.writeBigUInt64LE(BigInt(dataSize), 8);
    return chunk({ id: 'ds64', data: body.subarray(0, bytes) });
  };
  const long = (dataSize: number, ...more: readonly Uint8Array[]) => {
    const chunks = [...more, FMT, data];
    const length = 4 + 36 + chunks.reduce((sum, each) => sum + each.length, 0);
    return riff([ds64(length, dataSize), ...chunks], { magic: 'RF64', riffSize: UNWRITTEN });
  };
  const credential = chunk({ id: 'C2PA', data: Buffer.alloc(64) });
  const whole = riff([FMT, data]);
  type Faults = Readonly<
    Record<
      Exclude<StructureBreak, keyof typeof REASONS_WITHOUT_FIXTURE>,
      readonly [audio: () => Buffer, ...also: StructureBreak[]]
    >
  >;
  const faults: Faults = {
    form_not_wave: [() => riff([FMT, data], { form: 'AVI ' })],
    riff_size_streaming: [() => riff([FMT, data], { riffSize: UNWRITTEN })],
    riff_size_past_eof: [() => riff([FMT, data], { riffSize: whole.length - 6 })],
    bytes_after_riff_end: [() => Buffer.concat([whole, Buffer.alloc(2)])],
    chunk_past_end: [() => riff([FMT, data, junk(4, { size: 0xffff_fff8 })])],
    chunk_header_truncated: [() => riff([FMT, data, Buffer.from('JUNK')])],
    pad_missing: [() => riff([FMT, data, junk(5, { pad: null })])],
    pad_nonzero: [() => riff([FMT, data, junk(5, { pad: 1 })])],
    chunk_id_invalid: [() => riff([FMT, data, named('BA D')])],
    too_many_chunks: [() => riff([FMT, data, ...Array.from({ length: 4095 }, () => junk(0))])],
    duplicate_fmt: [() => riff([FMT, FMT, data])],
    duplicate_data: [() => riff([FMT, data, data])],
    duplicate_ds64: [() => long(data.length - 8, ds64(0, 0))],
    fmt_missing: [() => riff([data]), 'data_before_fmt'],
    fmt_malformed: [() => riff([format(() => undefined, 15), data])],
    fmt_inconsistent: [() => riff([format((body) => body.writeUInt16LE(0, 2)), data])],
    data_missing: [() => riff([FMT, junk(4)])],
    data_before_fmt: [() => riff([data, FMT])],
    data_size_streaming: [
      () => riff([FMT, chunk({ id: 'data', data: tone(), size: UNWRITTEN })], { riffSize: UNWRITTEN }),
      'riff_size_streaming',
    ],
    data_empty: [() => riff([FMT, chunk({ id: 'data', data: Buffer.alloc(0) }), junk(4)])],
    data_not_aligned: [() => riff([FMT, chunk({ id: 'data', data: tone().subarray(1) })])],
    ds64_missing: [() => riff([FMT, data], { magic: 'RF64' })],
    ds64_not_first: [() => riff([FMT, data, ds64(0, 0)])],
    ds64_malformed: [
      () => riff([ds64(0, 0, 26), FMT, data], { magic: 'RF64', riffSize: 4 + 34 + FMT.length + data.length }),
    ],
    ds64_mismatch: [() => long(2)],
    credential_duplicate: [() => riff([FMT, data, credential, credential]), 'credential_not_last'],
    credential_id_variant: [() => riff([FMT, data, named('c2pa')])],
    credential_in_list: [() => riff([FMT, data, list(credential)])],
    credential_not_last: [() => riff([FMT, credential, data])],
    credential_too_large: [() => riff([FMT, data, chunk({ id: 'C2PA', data: Buffer.alloc(1_048_577) })])],
    tag_before_riff: [() => Buffer.concat([id3Tag(), whole])],
  };
  const order = Object.keys(faults);
  return entriesOf(faults).map(([slug, [audio, ...also]]) => {
    const reasons = [slug, ...also].sort((a, b) => order.indexOf(a) - order.indexOf(b));
    const carrier = slug === 'credential_duplicate' ? 'embedded' : 'none';
    return fixture(slug, 'unreadable', reasons, carrier, () => ({ audio: audio() }));
  });
}
