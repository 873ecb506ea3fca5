import { decide } from '../../domain/decision.js';
import type { StructureFinding } from '../../domain/findings.js';
import { NAMES_THIS_SERVICE } from '../../domain/parsed-credential.js';
import type { DecisionReason, ReasonOf } from '../../domain/reference/reasons.js';
import type { DecisionEnvelope, Verdict } from '../../domain/verification.js';
import { chunk, fmtChunk, riff } from './wave-file.js';

/** Files that were signed once and lie in the registry; every other fixture is an edit of one of them. */
export const ORIGINALS = [
  'valid',
  'valid_pair',
  'needs_review',
  'proof_not_registered',
  'credential_not_as_issued',
  'signer_unknown',
  'sealed_by_device',
] as const;
export type OriginalName = (typeof ORIGINALS)[number];

export interface FixtureFiles {
  readonly audio: Buffer;
  readonly sidecar?: Buffer;
}

/** Bytes of the originals. */
export type Originals = Readonly<Record<OriginalName, FixtureFiles>>;

/** File with the answer that verify gives for it. */
export interface Fixture {
  readonly name: string;
  readonly verdict: Verdict;
  readonly decision: Pick<DecisionEnvelope, 'status' | 'reasons' | 'recommendedAction' | 'credentialCarrier'>;
  /** The file name's extension where the audio is no WAV. */
  readonly extension?: 'mp3';
  files(originals: Originals): FixtureFiles;
}

const FAULT_OF_FORM =
  'a fault of form: other such faults have fixtures, and the answer differs in the slug alone';
const NEW_SIGNATURE =
  'needs a new signature: an edit without one is told as assertion_hash_mismatch or signature_mismatch';
const KEY_OF_SERVICE = 'needs the key of the service, with which it never signs such a statement';

/** Reasons of verify that no fixture shows, each with its cause. */
export const REASONS_WITHOUT_FIXTURE = {
  signer_revoked: 'needs a revoked certificate, with which every proof it signed would go',
  signer_not_pinned: 'needs a certificate that the authority of this installation signed and nobody lists',
  header_truncated: 'a file of fewer bytes announces no container: the reason is container_unsupported',
  store_too_large: 'the reader of the file finds such a chunk first: the reason is credential_too_large',
  extent_mismatch: 'the reader of the file hands over the data of exactly one chunk',
  box_truncated: FAULT_OF_FORM,
  box_too_deep: FAULT_OF_FORM,
  too_many_boxes: FAULT_OF_FORM,
  description_malformed: FAULT_OF_FORM,
  manifest_missing: FAULT_OF_FORM,
  assertion_malformed: FAULT_OF_FORM,
  assertion_duplicate: FAULT_OF_FORM,
  claim_malformed: FAULT_OF_FORM,
  cose_malformed: FAULT_OF_FORM,
  cose_payload_present: FAULT_OF_FORM,
  cose_algorithm_missing: FAULT_OF_FORM,
  cose_certificate_missing: FAULT_OF_FORM,
  cose_padding_not_zero: FAULT_OF_FORM,
  certificate_malformed: FAULT_OF_FORM,
  signature_reference: FAULT_OF_FORM,
  assertion_missing: FAULT_OF_FORM,
  assertion_listed_twice: FAULT_OF_FORM,
  assertion_not_listed: FAULT_OF_FORM,
  algorithm_not_of_key: FAULT_OF_FORM,
  sidecar_not_canonical: FAULT_OF_FORM,
  sidecar_not_writer_form: FAULT_OF_FORM,
  signature_not_low_s: 'needs a signer of ES256, and an installation may sign with Ed25519',
  hash_data_malformed: NEW_SIGNATURE,
  statement_malformed: NEW_SIGNATURE,
  not_writer_form: NEW_SIGNATURE,
  exclusion_not_chunk: NEW_SIGNATURE,
  kid_mismatch: NEW_SIGNATURE,
  class_confusion: KEY_OF_SERVICE,
  issuer_mismatch: KEY_OF_SERVICE,
  outside_validity: KEY_OF_SERVICE,
} as const satisfies Partial<Record<DecisionReason, string>>;

const RATE = 22_050;
const UNWRITTEN = 0xffff_ffff;

/** Samples of one second: a tone of 440 Hz, 16 bit, mono. */
function tone(): Buffer {
  const data = Buffer.alloc(RATE * 2);
  for (let i = 0; i < RATE; i += 1)
    data.writeInt16LE(Math.round(8000 * Math.sin((2 * Math.PI * 440 * i) / RATE)), i * 2);
  return data;
}

const FMT = fmtChunk({ sampleRate: RATE });

/** The audio from which every fixture is made. */
export function plainAudio(): Buffer {
  return riff([FMT, chunk({ id: 'data', data: tone() })]);
}

/** The fixtures, in the order of the verdicts. */
export function listFixtures(): readonly Fixture[] {
  return [
    original('valid', 'valid', ['credential_verified'], 'embedded'),
    original('valid_pair', 'valid', ['credential_verified'], 'sidecar'),
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
    unreadable('credential_missing', plainAudio),
    unreadable('store_start_missing', () =>
      riff([FMT, chunk({ id: 'data', data: tone() }), chunk({ id: 'C2PA', data: Buffer.alloc(64) })]),
    ),
    {
      ...unreadable('container_unsupported', () => {
        // Frames of MPEG-1 layer III, 128 kbit/s at 44.1 kHz: 417 bytes for 1,152 samples, all silent.
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

/** A valid file whose creator's answers contradict each other. */
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

/** Edits of a file, by the reason that the edited one is refused for. */
type Edits = Readonly<Partial<Record<ReasonOf<'tampered'>, (file: Buffer) => Buffer>>>;

function entriesOf<Key extends string, Value>(
  members: Readonly<Partial<Record<Key, Value>>>,
): readonly (readonly [Key, Value])[] {
  return Object.entries(members) as [Key, Value][];
}

function tamperedStores(): Fixture[] {
  const edits: Edits = {
    // The first box of the manifest says that it goes on behind the store.
    box_size: (audio) =>
      written(audio, storeAt(audio) + 8 + audio.readUInt32BE(storeAt(audio) + 8), UNWRITTEN),
    store_label: (audio) => renamed(audio, '\x03c2pa\0', '\x03c2pb\0'),
    assertion_store_malformed: (audio) => renamed(audio, 'c2pa.assertions\0', 'c2pa.assertionz\0'),
    claim_box_malformed: (audio) => renamed(audio, 'c2pa.claim.v2\0', 'c2pa.claim.x2\0'),
    signature_box_malformed: (audio) => renamed(audio, 'c2pa.signature\0', 'c2pa.signaturf\0'),
    // Another proof id is written into the statement.
    assertion_hash_mismatch: (audio) => {
      const at = audio.indexOf('prf_', storeAt(audio), 'latin1') + 29;
      const copy = Buffer.from(audio);
      copy.write(copy[at] === 0x30 ? '1' : '0', at, 'latin1');
      return copy;
    },
    // The store ends with the signature, but for the pad byte of the chunk.
    signature_mismatch: (audio) => {
      const start = storeAt(audio);
      return flipped(audio, start + audio.readUInt32LE(start - 4) - 2);
    },
  };
  return entriesOf(edits).map(([reason, edit]) =>
    fixture(`store_${reason}`, 'tampered', [reason], 'embedded', ({ valid: { audio } }) => ({
      audio: edit(audio),
    })),
  );
}

function tamperedSidecars(): Fixture[] {
  const edits: Edits = {
    sidecar_malformed: (sidecar) => sidecar.subarray(0, -10),
    sidecar_over_budget: (sidecar) => Buffer.concat([sidecar, Buffer.alloc(20 * 1024)]),
    sidecar_version_unknown: (sidecar) => {
      const copy = Buffer.from(sidecar);
      // Behind the array head, the string head, and the name.
      copy[2 + 'takemark.sidecar'.length] = 2;
      return copy;
    },
    sidecar_members: (sidecar) => renamed(sidecar, 'production-record', 'production-recorx'),
    signature_mismatch: (sidecar) => flipped(sidecar, sidecar.length - 2),
  };
  return entriesOf(edits).map(([reason, edit]) =>
    fixture(
      reason.startsWith('sidecar_') ? reason : `sidecar_${reason}`,
      'tampered',
      [reason],
      'sidecar',
      ({ valid_pair: { audio, sidecar } }) => ({ audio, sidecar: edit(sidecar!) }),
    ),
  );
}

/** Start of the manifest store in a file whose last chunk is its credential. */
function storeAt(audio: Buffer): number {
  return audio.lastIndexOf('C2PA', undefined, 'latin1') + 8;
}

function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at]! ^= 1;
  return copy;
}

function written(bytes: Buffer, at: number, value: number): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeUInt32BE(value, at);
  return copy;
}

/** Replaces a text by another of its length, where it first stands. */
function renamed(bytes: Buffer, text: string, other: string): Buffer {
  const copy = Buffer.from(bytes);
  copy.write(other, bytes.indexOf(text, 0, 'latin1'), 'latin1');
  return copy;
}

/** A file for each finding of the RIFF reader, in the order in which they are told. */
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
  const bext = (version: number, bytes = 602) => {
    const body = Buffer.alloc(bytes);
    body.writeUInt16LE(version, 346);
    return chunk({ id: 'bext', data: body });
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
  let deep: Buffer = named('ISFT');
  for (let depth = 0; depth < 9; depth += 1) deep = list(deep);
  const whole = riff([FMT, data]);
  type Faults = Readonly<
    Record<
      Exclude<StructureFinding, keyof typeof REASONS_WITHOUT_FIXTURE>,
      readonly [audio: () => Buffer, ...also: StructureFinding[]]
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
    duplicate_bext: [() => riff([bext(1), FMT, data, bext(1)])],
    duplicate_fact: [() => riff([FMT, named('fact'), named('fact'), data])],
    fmt_missing: [() => riff([data]), 'data_before_fmt'],
    fmt_malformed: [() => riff([format(() => undefined, 17), data])],
    fmt_inconsistent: [() => riff([format((body) => body.writeUInt16LE(0, 2)), data])],
    codec_unsupported: [() => riff([format((body) => body.writeUInt16LE(6, 0)), data])],
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
    bext_malformed: [() => riff([bext(1, 600), FMT, data])],
    bext_version_unknown: [() => riff([bext(8), FMT, data])],
    list_malformed: [() => riff([FMT, data, chunk({ id: 'LIST', data: Buffer.alloc(2) })])],
    list_too_deep: [() => riff([FMT, data, deep])],
    credential_duplicate: [() => riff([FMT, data, credential, credential]), 'credential_not_last'],
    credential_id_variant: [() => riff([FMT, data, named('c2pa')])],
    credential_in_list: [() => riff([FMT, data, list(credential)])],
    credential_not_last: [() => riff([FMT, credential, data])],
    credential_too_large: [() => riff([FMT, data, chunk({ id: 'C2PA', data: Buffer.alloc(1_048_577) })])],
  };
  const order = Object.keys(faults);
  return entriesOf(faults).map(([slug, [audio, ...also]]) => {
    const reasons = [slug, ...also].sort((a, b) => order.indexOf(a) - order.indexOf(b));
    const carrier = slug === 'credential_duplicate' ? 'embedded' : 'none';
    return fixture(slug, 'unreadable', reasons, carrier, () => ({ audio: audio() }));
  });
}
