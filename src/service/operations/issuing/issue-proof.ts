import { createHash } from 'node:crypto';
import { type EmbeddingPlan, planEmbedding } from '../../../core/credential/embed.js';
import { signSidecar } from '../../../core/credential/sidecar.js';
import { stateProduction } from '../../../core/credential/statement.js';
import type { Container, Measurement } from '../../../core/domain/audio.js';
import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import { describeFinding, type FoundAt, isHarmless, MAX_CHUNKS } from '../../../core/domain/findings.js';
import type { ObservedProduction } from '../../../core/domain/observed-production.js';
import type { ProductionStatement } from '../../../core/domain/parsed-credential.js';
import { judge } from '../../../core/domain/verdict.js';
import type { AudioEngine, IngestOptions } from '../../../core/ports/audio-engine.js';
import type { IssuingCertificates, Signer } from '../../../core/ports/signing.js';
import { observedProduction } from '../../../witness/domain/observe-production.js';
import type { ResultOf } from '../../contract/results.js';
import type { AuditDraft } from '../../domain/audit.js';
import { samplesMembers } from '../../domain/digests.js';
import type { Carrier, DeclaredSong, IssuedProof } from '../../domain/proof.js';
import { MAX_UPLOAD_BYTES, neededPurpose } from '../../domain/upload.js';
import type { StagedAsset } from '../../ports/assets.js';
import type { CredentialReader } from '../../ports/credential-reader.js';
import type { Observer } from '../../ports/observer.js';
import type { IssuingReplay, PartnerStore, ProofStore } from '../../ports/stores.js';
import type { Clock, Ids } from '../../ports/system.js';
import { safeFileName } from '../file-name.js';
import { idempotencyDigest, idempotencyKeyReused, REPLAY_SECONDS } from '../idempotency.js';
import type { SignerRevocations } from '../system/signer-revocations.js';
import { explainBreaks, type IssuingBreak, issuingBreaks, RIFF_SIZE_AT } from './explain-breaks.js';
import {
  type Bound,
  IssuedFile,
  RIFF_HEAD_BYTES,
  riffSizeField,
  statedLength,
  withRiffSize,
  withWholeHead,
} from './issued-file.js';
import { findRepair, type Repair } from './repair-wave.js';
import {
  type ReplayedTrace,
  replaySubmitted,
  type SettledEvidence,
  type SettleEvidenceDeps,
  type SubmittedEvidence,
  settleEvidence,
} from './settle-evidence.js';
import { requireSigner } from './signer-state.js';

export interface IssueRequest {
  readonly partnerId: string;
  readonly songTitle: string;
  /** What the caller declares about the song beside its title. */
  readonly declaredSong?: DeclaredSong;
  readonly fileName: string;
  readonly carrier: Carrier;
  /** Repairs a WAV file whose break has exactly one repair. Without it such a file is refused. */
  readonly mend?: boolean;
  /** Issues a file above 65 MiB, up to the limit of large files (rule 10.21). */
  readonly large?: boolean;
  readonly idempotencyKey?: string;
  /** The audio. The route limits its length. */
  readonly audio: AsyncIterable<Uint8Array>;
  /** The capture trace and the evidence submitted with it. */
  readonly evidence?: SubmittedEvidence;
  /** True if the operator vouches that a file of unknown container is audio (rule 10.18). */
  readonly allowUnknownContainer?: boolean;
}

export type IssueResult = ResultOf<'issueProof'> & {
  /** True for the result of an earlier request with the same Idempotency-Key. */
  readonly replayed: boolean;
};

export interface IssueProofDeps extends SettleEvidenceDeps {
  readonly stores: PartnerStore & ProofStore;
  /** The engine that measures what is issued. */
  readonly issuingEngine: AudioEngine;
  readonly signer: Signer;
  readonly certificates: IssuingCertificates;
  readonly revocations: Pick<SignerRevocations, 'find'>;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly observer: Observer;
  readonly reader: CredentialReader;
  /** The largest file of a large purpose, in bytes. */
  readonly largeBytes: number;
  /** The signal that aborts when the call is given up. */
  readonly signal?: AbortSignal;
}

/**
 * Issues a proof.
 * 1. Streams the audio into a staged asset, and hashes and measures it.
 * 2. Binds a credential to it.
 * 3. Judges the result exactly as a partner's upload.
 * 4. Registers the proof in one atomic write.
 * A process that is killed before that write leaves no proof, and the next start deletes the staged asset.
 */
export async function issueProof(deps: IssueProofDeps, request: IssueRequest): Promise<IssueResult> {
  if (request.mend === true && request.carrier === 'sidecar')
    throw new DomainError('invalid_request', 'A file with a sidecar is never mended. Omit `mend`.', {
      reason: 'invalid_member',
    });
  if ((await deps.stores.getPartner(request.partnerId)) === undefined)
    throw new DomainError('not_found', 'There is no such partner.');
  const proofId = deps.ids.next('proof');
  const createdAt = Math.floor(deps.clock.now() / 1000);
  await requireSigner(deps, createdAt);
  await deps.stores.reserveProof(proofId, request.partnerId, createdAt);
  const { evidence: submitted } = request;
  // The trace arrives before the audio.
  const trace =
    submitted && (await replaySubmitted(deps, { proofId, partnerId: request.partnerId }, submitted));
  let evidence: SettledEvidence | undefined;
  const staged = await deps.assets.stage(proofId).catch(async (error: unknown) => {
    await trace?.staged.discard();
    throw error;
  });
  const { identity } = deps.signer;
  const state = (evidenceSha256: string | null) =>
    stateProduction(identity, { proofId, createdAt, evidenceSha256 });
  let foreseen: IssuedFile | undefined;
  try {
    const received = await receive(deps, request, staged, trace === undefined ? state(null) : undefined);
    const { sent } = received;
    foreseen = received.foreseen;
    const repair = await repairOf(deps, request, sent, staged);
    const notes = notesOf(request, sent, repair);
    const replay = replayOf(request, proofId, sent.sha256, trace, createdAt);
    const earlier = await findEarlier(deps, replay, createdAt);
    if (earlier !== undefined) return { ...earlier, ...notes };
    refuseNoAudio(sent, request);
    const original = await prepare(request, sent, staged, repair);
    if (trace !== undefined)
      evidence = await settleEvidence(
        deps,
        { proofId, now: Math.floor(deps.clock.now() / 1000), originalSha256: original.sha256 },
        trace,
      );
    const statement = state(evidence?.reference.traceSha256 ?? null);
    const bound =
      request.carrier === 'sidecar'
        ? await pair(deps, statement, original)
        : await (foreseen?.finish(staged) ??
            embed(
              deps,
              request,
              statement,
              original,
              staged,
              evidence && observedProduction(evidence.facts),
            ));
    const proof: IssuedProof = defined({
      state: 'issued' as const,
      proofId,
      partnerId: request.partnerId,
      song: defined({ title: request.songTitle, declared: request.declaredSong }),
      carrier: request.carrier,
      createdAt,
      kid: identity.kid,
      issuer: identity.issuer,
      originalSha256: original.sha256,
      boundAudioSha256: bound.boundAudioSha256,
      fileSha256: bound.issued.sha256,
      ...samplesMembers(bound.issued.samples),
      credentialSha256: bound.credentialSha256,
      asset: {
        bytes: bound.issued.bytes,
        sha256: bound.issued.sha256,
        fileName: safeFileName(request.fileName),
        mediaType: MEDIA_TYPES[original.container],
      },
      sidecar: bound.sidecar,
      evidence: evidence?.reference,
      summary: evidence?.summary,
      unknownContainer: original.container === 'unknown' ? (true as const) : undefined,
    });
    await proveReadable(deps, proof, bound.issued);
    // The certificate may have been revoked while the audio arrived.
    await requireSigner(deps, createdAt);
    // From here on the call runs to its end, because published files without a proof would be left.
    deps.signal?.throwIfAborted();
    await evidence?.publish();
    await staged.publish();
    const draft: AuditDraft = {
      partnerId: request.partnerId,
      action: 'proof_issued',
      at: createdAt,
      actor: 'operator',
      subjects: [proofId],
    };
    const outcome = await deps.stores
      .issueProof(proof, draft, replay, evidence?.bodies)
      .catch(async (error: unknown) => {
        // The reservation of the id expired, possibly before its files were published.
        if (error instanceof DomainError && error.code === 'conflict') await deps.assets.delete(proofId);
        throw error;
      });
    if (outcome === 'replay_exists') {
      await deps.assets.delete(proofId);
      const winner = await findEarlier(deps, replay, createdAt);
      // The proof was erased meanwhile, so the Idempotency-Key can be used again.
      if (winner === undefined)
        throw new DomainError(
          'unavailable',
          'The proof issued with this Idempotency-Key is being erased. Send the request again.',
          { reason: 'store_unavailable', retryAfterSeconds: 1 },
        );
      return { ...winner, ...notes };
    }
    deps.observer.issued(request.carrier);
    return { ...resultOf(proof, false), ...notes };
  } finally {
    // `discard` has no effect after `publish`. From then on the registry decides whether the proof exists,
    // and the orphan collection follows the registry.
    foreseen?.abort();
    await staged.discard();
    await trace?.staged.discard();
    await evidence?.discard();
  }
}

/** The owner name of the issuing side in the engine and the reader, which treat it like a partner. */
const ISSUING = 'issuing';

/**
 * Measures `audio` with the engine.
 * @param options `samples` asks for the samples digest
 */
export async function measure(
  engine: AudioEngine,
  audio: AsyncIterable<Uint8Array>,
  options: Pick<IngestOptions, 'samples'> = {},
): Promise<Measurement> {
  const ingest = engine.open(ISSUING, options);
  try {
    for await (const chunk of audio) await ingest.write(chunk);
    return await ingest.end();
  } finally {
    ingest.abort();
  }
}

/**
 * Stages and measures the audio while it arrives. If the head of a WAV file states the true length, the file is
 * staged as it will be issued, and is bound and measured in the same pass.
 * @param statement the statement of the credential, if it does not depend on the audio
 */
async function receive(
  deps: IssueProofDeps,
  request: IssueRequest,
  staged: StagedAsset,
  statement: ProductionStatement | undefined,
): Promise<{ readonly sent: Measurement; readonly foreseen?: IssuedFile }> {
  // The samples of a file with its credential are read from the issued file.
  const ingest = deps.issuingEngine.open(ISSUING, { samples: request.carrier === 'sidecar' });
  let head: Uint8Array | undefined;
  let foreseen: IssuedFile | undefined;
  try {
    for await (const chunk of withWholeHead(request.audio)) {
      let issued = chunk;
      if (head === undefined) {
        head = Uint8Array.from(chunk.subarray(0, RIFF_HEAD_BYTES));
        const plan = statement && foresee(deps, request, statement, head);
        if (plan !== undefined) {
          foreseen = new IssuedFile(plan, deps.issuingEngine.open(ISSUING, { samples: true }));
          issued = withRiffSize(chunk, plan);
        }
      }
      await staged.append(issued);
      await ingest.write(chunk);
      await foreseen?.write(issued);
    }
    const sent = await ingest.end();
    if (foreseen === undefined || (sent.bytes === foreseen.plan.start && issuingBreaks(sent).length === 0))
      return defined({ sent, foreseen });
    // The head was wrong. The file is staged as it was sent, so that it can be explained or mended.
    foreseen.abort();
    await staged.patch(RIFF_SIZE_AT, head!.subarray(RIFF_SIZE_AT, RIFF_SIZE_AT + 4));
    return { sent };
  } catch (error) {
    foreseen?.abort();
    throw error;
  } finally {
    ingest.abort();
  }
}

/** Plans the credential of a WAV file from its head. Returns undefined if only the whole file can decide. */
function foresee(
  deps: IssueProofDeps,
  request: IssueRequest,
  statement: ProductionStatement,
  head: Uint8Array,
): EmbeddingPlan | undefined {
  const audioBytes = request.carrier === 'embedded' ? statedLength(head) : undefined;
  const most = largestResult(deps, request);
  if (audioBytes === undefined || audioBytes % 2 !== 0 || audioBytes < RIFF_HEAD_BYTES || audioBytes > most)
    return undefined;
  const plan = planFor(deps, { audioBytes, statement });
  return resultBytes(plan) > most ? undefined : plan;
}

function planFor(
  { signer, ids }: IssueProofDeps,
  request: Pick<Parameters<typeof planEmbedding>[0], 'audioBytes' | 'statement' | 'observed'>,
): EmbeddingPlan {
  return planEmbedding({ ...request, signer, random: (length) => ids.random(length) });
}

/** Returns the length of the planned file. */
function resultBytes({ start, chunkLength, pad }: EmbeddingPlan): number {
  return start + chunkLength + pad;
}

/**
 * Embeds the credential as the last chunk of the RIFF. The RIFF size counts the credential, and the
 * credential binds the RIFF size.
 */
async function embed(
  deps: IssueProofDeps,
  request: IssueRequest,
  statement: ProductionStatement,
  original: Measurement,
  staged: StagedAsset,
  observed: ObservedProduction | undefined,
): Promise<Bound> {
  const most = largestResult(deps, request);
  // A longer file has no plan, because its size does not fit into the RIFF header.
  if (original.bytes > most) throw resultTooLarge(most, request);
  const plan = planFor(deps, defined({ audioBytes: original.bytes, statement, observed }));
  if (resultBytes(plan) > most) throw resultTooLarge(most, request);
  await staged.patch(RIFF_SIZE_AT, riffSizeField(plan));
  const issued = new IssuedFile(plan, deps.issuingEngine.open(ISSUING, { samples: true }));
  try {
    for await (const chunk of staged.read()) await issued.write(chunk as Uint8Array);
    return await issued.finish(staged);
  } finally {
    issued.abort();
  }
}

/** The longest file whose size fits into a RIFF header together with any credential, which has at most 1 MiB. */
const LONGEST_RIFF = 0xffff_ffff - 1_048_576;

/** Returns the most bytes that the file with its credential may have. */
function largestResult({ largeBytes }: IssueProofDeps, { large }: IssueRequest): number {
  return large === true ? Math.min(Math.max(largeBytes, MAX_UPLOAD_BYTES), LONGEST_RIFF) : MAX_UPLOAD_BYTES;
}

function resultTooLarge(most: number, { large }: IssueRequest): DomainError {
  const hint = large === true ? '' : ' `--large` issues it (`large=true` in the operator API).';
  return new DomainError('unprocessable', `With its credential the file would exceed ${most} bytes.${hint}`, {
    reason: 'result_too_large',
  });
}

/** Returns the only possible repair of a broken file. The audio of a pair is opaque bytes and needs none. */
async function repairOf(
  { issuingEngine }: IssueProofDeps,
  { carrier }: IssueRequest,
  sent: Measurement,
  staged: StagedAsset,
): Promise<Repair | undefined> {
  if (carrier === 'sidecar') return undefined;
  return findRepair(
    sent,
    () => staged.read(),
    (audio) => measure(issuingEngine, audio),
  );
}

function notesOf(
  { carrier, mend }: IssueRequest,
  sent: Measurement,
  repair: Repair | undefined,
): Pick<IssueResult, 'warnings' | 'mended'> {
  const repaired = mend === true ? repair : undefined;
  const harmless = carrier === 'sidecar' ? [] : (repaired?.mended ?? sent).findings.filter(isHarmless);
  const warnings = harmless.map(({ slug, offset }) => ({ code: slug, offset }));
  return defined({
    warnings: warnings.length === 0 ? undefined : warnings,
    mended: repaired && { sentSha256: sent.sha256, changes: repaired.changes },
  });
}

/** Refuses what cannot contain a credential, and mends the staged file if the request asks for it. */
async function prepare(
  { carrier, mend }: IssueRequest,
  sent: Measurement,
  staged: StagedAsset,
  repair: Repair | undefined,
): Promise<Measurement> {
  if (carrier === 'sidecar') return sent;
  const original = mend === true && repair !== undefined ? repair.mended : sent;
  await refuseUnembeddable(original, () => staged.read(), repair !== undefined);
  if (original === sent || repair === undefined) return sent;
  for (const { offset, to } of repair.changes) {
    if (offset < sent.bytes) await staged.patch(offset, Uint8Array.of(to));
    else await staged.append(Uint8Array.of(to));
  }
  return original;
}

/**
 * Refuses a file that is empty, or that the service does not know as audio (rule 10.5).
 * @throws DomainError `unprocessable`, with a reason
 */
export function refuseNoAudio(
  original: Measurement,
  { allowUnknownContainer = false }: Pick<IssueRequest, 'allowUnknownContainer'> = {},
): void {
  if (original.bytes === 0)
    throw new DomainError('unprocessable', 'The file is empty.', { reason: 'audio_empty' });
  if (original.container === 'unknown' && !allowUnknownContainer)
    throw new DomainError(
      'unprocessable',
      'The service does not know the format of the file, so the file may not be audio.',
      { reason: 'audio_unknown' },
    );
}

/**
 * Refuses a file that cannot contain a credential.
 * @param read opens the file, to explain what is wrong with it
 * @param mendable the file has exactly one repair
 * @throws DomainError `unprocessable`, with a reason
 */
export async function refuseUnembeddable(
  original: Measurement,
  read: () => AsyncIterable<Uint8Array>,
  mendable = false,
): Promise<void> {
  if (original.container !== 'riff' || original.findings.some(({ slug }) => slug === 'tag_before_riff'))
    throw new DomainError(
      'unprocessable',
      'Only WAV and BWF files can contain their credential. Request a sidecar.',
      { reason: 'container_needs_sidecar' },
    );
  const slugs = original.findings.map((finding) => finding.slug);
  if (original.credential !== undefined || slugs.some((slug) => slug.startsWith('credential_')))
    throw new DomainError('unprocessable', 'The file already contains a credential.', {
      reason: 'audio_already_credentialed',
    });
  if (slugs.includes('codec_unsupported'))
    throw new DomainError(
      'unprocessable',
      `The audio of this WAV file is not PCM or float (format tag ${original.format?.formatTag}), so the file cannot contain its credential. Request a sidecar.`,
      { reason: 'container_needs_sidecar' },
    );
  await refuseBroken(original, issuingBreaks(original), read, mendable);
  // The credential adds one chunk.
  if (original.chunkCount >= MAX_CHUNKS)
    throw new DomainError(
      'unprocessable',
      `With its credential, the file would have more than ${MAX_CHUNKS} chunks, the maximum.`,
      {
        reason: 'audio_malformed',
      },
    );
  if (original.frames === undefined || original.frames === 0) throw noAudio();
}

async function refuseBroken(
  original: Measurement,
  breaks: readonly FoundAt<IssuingBreak>[],
  read: () => AsyncIterable<Uint8Array>,
  mendable: boolean,
): Promise<void> {
  if (breaks.length === 0) return;
  const explained = async (found: typeof breaks): Promise<string> =>
    (await explainBreaks(original, found, read())).map(describeFinding).join(', ');
  const unwritten = breaks.filter(({ slug }) => slug.endsWith('_size_streaming'));
  if (unwritten.length > 0)
    throw new DomainError(
      'unprocessable',
      `The recording was never closed: ${await explained(unwritten)}. Open it in an audio program and save it again.`,
      { reason: 'audio_unfinished' },
    );
  const found = new Set(breaks.map(({ slug }) => slug));
  if (found.has('data_empty') && !found.has('duplicate_data')) throw noAudio();
  const hint = mendable ? ' `--mend` repairs this (`mend=true` in the operator API).' : '';
  throw new DomainError('unprocessable', `The WAV file is malformed: ${await explained(breaks)}.${hint}`, {
    reason: 'audio_malformed',
  });
}

function noAudio(): DomainError {
  return new DomainError('unprocessable', 'The file contains no audio.', { reason: 'audio_empty' });
}

/** Signs a sidecar that binds the whole file. The audio of a pair is opaque bytes. */
async function pair(
  deps: IssueProofDeps,
  statement: ProductionStatement,
  original: Measurement,
): Promise<Bound> {
  const sidecar = await signSidecar({
    statement,
    binding: { bytes: original.bytes, sha256: original.sha256 },
    signer: deps.signer,
  });
  const credentialSha256 = createHash('sha256').update(sidecar).digest('hex');
  return { boundAudioSha256: original.sha256, credentialSha256, issued: original, sidecar };
}

/**
 * Judges the new proof by the same rules as a partner's upload, so that every issued proof can be verified.
 */
async function proveReadable(
  { reader }: IssueProofDeps,
  proof: IssuedProof,
  issued: Measurement,
): Promise<void> {
  const { credential, bext, ...measurement } = issued;
  const judgement = judge(
    defined({
      measurement: defined({ ...measurement, broadcastWave: bext !== undefined, credential }),
      proof,
      embedded: credential && (await reader.readEmbedded(ISSUING, credential.data, credential)),
      sidecar: proof.sidecar && (await reader.readSidecar(ISSUING, proof.sidecar)),
    }),
  );
  if (judgement.verdict !== 'valid')
    throw new Error(
      `verification of the new credential gives ${judgement.verdict}: ${judgement.reasons.join(', ')}`,
    );
}

/**
 * Returns the replay record, bound to the complete request: partner, title, declared song, file name, carrier,
 * every byte of the audio as it was sent, whether to mend it, whether an unknown container is allowed, and the
 * submitted evidence.
 */
function replayOf(
  request: IssueRequest,
  proofId: string,
  sentSha256: string,
  trace: ReplayedTrace | undefined,
  now: number,
): IssuingReplay | undefined {
  if (request.idempotencyKey === undefined) return undefined;
  return {
    key: idempotencyDigest('issue', request.partnerId, request.idempotencyKey),
    requestSha256: idempotencyDigest(
      request.partnerId,
      request.songTitle,
      request.fileName,
      request.carrier,
      sentSha256,
      ...(request.mend === true ? ['mend'] : []),
      ...(trace === undefined ? [] : [trace.replayed.sha256, JSON.stringify(trace.supplied)]),
      ...(request.allowUnknownContainer === true ? ['unknown_container'] : []),
      ...(request.declaredSong === undefined ? [] : ['declared_song', JSON.stringify(request.declaredSong)]),
    ),
    proofId,
    expiresAt: now + REPLAY_SECONDS,
  };
}

/** Returns the result of an earlier request with the same Idempotency-Key. */
async function findEarlier(
  deps: IssueProofDeps,
  replay: IssuingReplay | undefined,
  now: number,
): Promise<IssueResult | undefined> {
  const earlier = replay === undefined ? undefined : await deps.stores.getIssuingReplay(replay.key, now);
  if (earlier === undefined) return undefined;
  if (earlier.requestSha256 !== replay?.requestSha256) throw idempotencyKeyReused();
  const proof = await deps.stores.getProof(earlier.proofId);
  if (proof?.state !== 'issued')
    throw new DomainError(
      'not_found',
      'The proof that was issued with this Idempotency-Key has been erased.',
    );
  return resultOf(proof, true);
}

function resultOf(proof: IssuedProof, replayed: boolean): IssueResult {
  const { proofId, createdAt, carrier, originalSha256, boundAudioSha256, asset, unknownContainer } = proof;
  return defined({
    proofId,
    issuedAt: createdAt,
    carrier,
    originalSha256,
    boundAudioSha256,
    asset: defined({ ...asset, uploadPurpose: neededPurpose(asset.bytes) }),
    unknownContainer,
    replayed,
  });
}

const MEDIA_TYPES: Readonly<Record<Container, string>> = {
  unknown: 'application/octet-stream',
  riff: 'audio/wav',
  rf64: 'audio/wav',
  bw64: 'audio/wav',
  rifx: 'audio/wav',
  w64: 'application/octet-stream',
  aiff: 'audio/aiff',
  aifc: 'audio/aiff',
  caf: 'audio/x-caf',
  mp3: 'audio/mpeg',
  mp4: 'audio/mp4',
  flac: 'audio/flac',
  ogg: 'audio/ogg',
  aac: 'audio/aac',
  wavpack: 'audio/x-wavpack',
};
