import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { finishEmbedding, planEmbedding } from '../../../core/credential/embed.js';
import { type Statement, stateProduction, stateSeal } from '../../../core/credential/statement.js';
import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import { formatIdentifier } from '../../../core/domain/identifiers.js';
import type { SignatureAlgorithm } from '../../../core/domain/parsed-credential.js';
import type { Verdict } from '../../../core/domain/verdicts.js';
import type { Signer } from '../../../core/ports/signing.js';
import type { IssuedProof } from '../../domain/proof.js';
import type { DecisionEnvelope } from '../../domain/verification.js';
import type { PartnerStore } from '../../ports/stores.js';
import type { Caller } from '../caller.js';
import { type IssueProofDeps, issueProof } from '../issuing/issue-proof.js';
import { findSignerFault } from '../issuing/signer-state.js';
import { type RecordDeclarationDeps, recordDeclaration } from '../proofs/declarations.js';
import { type Asset, type AssetPart, type ReadAssetDeps, readAsset } from '../proofs/read-asset.js';
import type { MatchType } from '../verification/find-matches.js';
import {
  type Fixture,
  type FixtureFiles,
  headerlessAudio,
  listFixtures,
  ORIGINALS,
  type OriginalName,
  type Originals,
  plainAudio,
} from './fixtures.js';
import {
  FAULTS_OF_SERVICE,
  type SignedFault,
  stating,
  storeIn,
  withSignedFault,
  withStore,
} from './store-edits.js';

/** A file of a fixture, as a list shows it. */
export interface FixtureFile {
  readonly part: AssetPart;
  readonly fileName: string;
  readonly mediaType: string;
  readonly bytes: number;
  readonly sha256: string;
  /** The path on the partner listener. */
  readonly href: string;
}

/** A fixture of the sandbox with the result that verify returns for it (rule 19.5). */
export interface AnnouncedFixture {
  readonly name: string;
  readonly verdict: Verdict;
  readonly good: boolean;
  readonly decision: Pick<DecisionEnvelope, 'status' | 'reasons' | 'recommendedAction' | 'credentialCarrier'>;
  /** The strongest match of an identify of the audio. Absent if the fixture does not show one. */
  readonly match?: MatchType;
  readonly files: readonly FixtureFile[];
}

export interface SandboxDeps extends IssueProofDeps, RecordDeclarationDeps, ReadAssetDeps {
  readonly stores: IssueProofDeps['stores'] & PartnerStore;
  readonly assets: IssueProofDeps['assets'];
  /** Creates the signer of a new artist device, which the service does not know. */
  readonly newDevice: (algorithm?: SignatureAlgorithm) => Signer;
  readonly sandbox: Sandbox;
}

/** The owner of the sandbox's proofs. All processes and starts share this partner, which has no key. */
const PARTNER = {
  partnerId: formatIdentifier('partner', 0, new Uint8Array(10)),
  name: 'Sandbox',
  plan: 'standard',
  createdAt: 0,
} as const;
/**
 * The number of sandbox proofs that are read. Races between processes may leave more proofs than there are
 * originals.
 */
const LISTED = 100;

/** The state of the sandbox in a process: the originals, some 45 kB each, and the list of fixtures. */
export class Sandbox {
  /** The ids of the proofs from which `built` was made. */
  of = '';
  built: { readonly originals: Originals; readonly announced: readonly AnnouncedFixture[] } | undefined;
  /** The lookup of the registry in progress, which concurrent callers share. */
  looking: Promise<NonNullable<Sandbox['built']>> | undefined;
}

/**
 * Returns every fixture with its files and its result. Originals that are missing in the registry are issued
 * first.
 */
export async function sandboxFixtures(
  deps: SandboxDeps,
  _caller: Caller,
): Promise<{ readonly fixtures: readonly AnnouncedFixture[] }> {
  return { fixtures: (await look(deps)).announced };
}

/**
 * Returns a file of a fixture.
 * @throws DomainError `not_found` for an unknown name, or a fixture without that part
 */
export async function sandboxFile(
  deps: SandboxDeps,
  _caller: Caller,
  { name, part }: { readonly name: string; readonly part: string },
): Promise<Asset> {
  const { originals, announced } = await look(deps);
  const file = announced.find((fixture) => fixture.name === name)?.files.find((each) => each.part === part);
  const bytes = file && fixtureNamed(name)?.files(originals)[file.part];
  if (file === undefined || bytes === undefined)
    throw new DomainError('not_found', 'The sandbox has no such file.');
  const { fileName, mediaType, sha256 } = file;
  return {
    bytes: bytes.length,
    sha256,
    fileName,
    mediaType,
    read: async (range) =>
      Readable.from([range === undefined ? bytes : bytes.subarray(range.start, range.end + 1)]),
  };
}

const FIXTURES = listFixtures();

function fixtureNamed(name: string): Fixture | undefined {
  return FIXTURES.find((fixture) => fixture.name === name);
}

function look(deps: SandboxDeps): Promise<NonNullable<Sandbox['built']>> {
  const { sandbox } = deps;
  sandbox.looking ??= build(deps).finally(() => {
    sandbox.looking = undefined;
  });
  return sandbox.looking;
}

/** Builds the fixtures. The registry is read each time, because a proof may have been erased. */
async function build(deps: SandboxDeps): Promise<NonNullable<Sandbox['built']>> {
  const { sandbox } = deps;
  let proofs = await registered(deps);
  const missing = ORIGINALS.filter((name) => !proofs.has(name));
  if (missing.length > 0) {
    await makeAll(deps, missing);
    proofs = await registered(deps);
  }
  const of = ORIGINALS.map((name) => proofs.get(name)?.proofId).join(' ');
  if (sandbox.built !== undefined && sandbox.of === of) return sandbox.built;
  const entries: [OriginalName, FixtureFiles][] = [];
  for (const name of ORIGINALS) {
    const proof = proofs.get(name);
    if (proof === undefined)
      throw new DomainError('unavailable', 'The fixtures are being created. Try again.', {
        reason: 'store_unavailable',
        retryAfterSeconds: 1,
      });
    entries.push([name, await filesOf(deps, name, proof)]);
  }
  const originals = Object.fromEntries(entries) as Originals;
  // A process may have died after issuing and before recording the answers.
  await contradict(deps, proofs.get('needs_review')!.proofId);
  sandbox.built = { originals, announced: FIXTURES.map((fixture) => announce(fixture, originals)) };
  sandbox.of = of;
  return sandbox.built;
}

/**
 * Returns the sandbox's proofs by the name of their original. Of several proofs the oldest is used, so that
 * all processes use the same. `credential_not_as_issued` names the valid proof in its title, so a copy for a
 * missing or erased valid proof is not found.
 */
async function registered({ stores }: SandboxDeps): Promise<ReadonlyMap<OriginalName, IssuedProof>> {
  const newestFirst = await stores.listProofs(PARTNER.partnerId, { limit: LISTED });
  const byTitle = new Map(newestFirst.map((proof) => [proof.song.title, proof]));
  const valid = byTitle.get('valid')?.proofId;
  return new Map(
    ORIGINALS.flatMap((name) => {
      const proof = byTitle.get(titleOf(name, valid));
      return proof === undefined ? [] : [[name, proof] as const];
    }),
  );
}

/**
 * Returns the title under which an original is registered. A title that depends on the valid proof contains
 * its id.
 */
function titleOf(name: OriginalName, valid: string | undefined): string {
  return name === 'credential_not_as_issued' ? `${name} ${valid}` : name;
}

async function makeAll(deps: SandboxDeps, missing: readonly OriginalName[]): Promise<void> {
  const fault = await findSignerFault(deps, now(deps));
  // The message of the fault is for the operator (rule 5.9).
  if (fault?.reason !== undefined)
    throw new DomainError('unavailable', 'The sandbox cannot sign its fixtures at the moment.', {
      reason: fault.reason,
      ...defined({ retryAfterSeconds: fault.retryAfterSeconds }),
    });
  await deps.stores.createPartner(PARTNER, {
    partnerId: PARTNER.partnerId,
    action: 'partner_created',
    at: PARTNER.createdAt,
    actor: 'operator',
    subjects: [PARTNER.partnerId],
  });
  for (const name of missing) await make(deps, name);
}

async function make(deps: SandboxDeps, name: OriginalName): Promise<void> {
  switch (name) {
    case 'valid':
    case 'needs_review':
      return issue(deps, name, 'embedded', plainAudio());
    case 'valid_pair':
      return issue(deps, name, 'sidecar', plainAudio());
    case 'container_unknown':
      return issue(deps, name, 'sidecar', headerlessAudio());
    case 'proof_not_registered':
      return keep(deps, name, production(deps, deps.signer, deps.ids.next('proof')), deps.signer);
    case 'credential_not_as_issued': {
      // Signing the same proof again gives a credential that differs from the registered one.
      const valid = (await registered(deps)).get('valid');
      if (valid === undefined) return;
      return keep(
        deps,
        titleOf(name, valid.proofId),
        production(deps, deps.signer, valid.proofId),
        deps.signer,
      );
    }
    case 'signer_unknown': {
      const stranger = deps.newDevice();
      return keep(deps, name, production(deps, stranger, deps.ids.next('proof')), stranger);
    }
    case 'sealed_by_device': {
      const device = deps.newDevice();
      return keep(deps, name, stateSeal(device.identity, now(deps)), device);
    }
    default: {
      const fault = name.slice('store_'.length) as SignedFault;
      const signer = stating(
        fault,
        FAULTS_OF_SERVICE.has(fault)
          ? deps.signer
          : deps.newDevice(fault === 'signature_not_low_s' ? 'ES256' : 'Ed25519'),
      );
      const statement =
        fault === 'class_confusion'
          ? stateSeal(signer.identity, now(deps))
          : production(deps, signer, deps.ids.next('proof'));
      return keep(deps, name, statement, signer, (store) => withSignedFault(fault, store, signer));
    }
  }
}

function now({ clock }: SandboxDeps): number {
  return Math.floor(clock.now() / 1000);
}

function production(deps: SandboxDeps, { identity }: Signer, proofId: string): Statement {
  return stateProduction(identity, { proofId, createdAt: now(deps), evidenceSha256: null });
}

/**
 * Issues with an Idempotency-Key from the title, so that processes that start at once issue one proof for
 * each title.
 */
async function issue(
  deps: SandboxDeps,
  title: string,
  carrier: 'embedded' | 'sidecar',
  audio: Uint8Array,
): Promise<void> {
  await issueProof(deps, {
    partnerId: PARTNER.partnerId,
    songTitle: title,
    fileName: 'sandbox.wav',
    carrier,
    allowUnknownContainer: title === 'container_unknown',
    idempotencyKey: `sandbox ${title}`,
    audio: Readable.from([audio]),
  });
}

/**
 * Registers a file that has its own credential as the audio of a pair, because audio of a pair is opaque
 * bytes. All processes then share the file.
 */
async function keep(
  deps: SandboxDeps,
  title: string,
  statement: Statement,
  signer: Signer,
  edit: (store: Buffer) => Promise<Buffer> | Buffer = (store) => store,
): Promise<void> {
  const plain = plainAudio();
  const plan = planEmbedding({
    audioBytes: plain.length,
    statement,
    signer,
    random: (length) => deps.ids.random(length),
  });
  plain.writeUInt32LE(plan.riffSize, 4);
  const binding = createHash('sha256').update(plain).update(new Uint8Array(plan.pad)).digest('hex');
  const { bytes } = await finishEmbedding(plan, binding);
  const signed = Buffer.concat([plain, bytes]);
  const file = withStore(signed, await edit(storeIn(signed)));
  try {
    await issue(deps, title, 'sidecar', file);
  } catch (error) {
    // Another process registered the file first, with its own signature.
    if (!(error instanceof DomainError) || error.reason !== 'idempotency_key_reused') throw error;
  }
}

/** Records two contradictory answers. Repeating the call changes nothing. */
async function contradict(deps: SandboxDeps, proofId: string): Promise<void> {
  const common = { surveyVersion: 'sandbox', subject: 'sandbox', submittedAt: 0 };
  await recordDeclaration(deps, proofId, {
    ...common,
    submissionId: 'sandbox_1',
    answers: { aiShareBand: 'none' },
  });
  await recordDeclaration(deps, proofId, {
    ...common,
    submissionId: 'sandbox_2',
    answers: { aiShareBand: 'over_three_quarters' },
  });
}

async function filesOf(deps: SandboxDeps, name: OriginalName, proof: IssuedProof): Promise<FixtureFiles> {
  const audio = await bytesOf(await readAsset(deps, proof.proofId, 'audio'));
  return name === 'valid_pair' || name === 'container_unknown'
    ? { audio, sidecar: await bytesOf(await readAsset(deps, proof.proofId, 'sidecar')) }
    : { audio };
}

async function bytesOf(asset: Asset): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of await asset.read()) chunks.push(chunk as Uint8Array);
  return Buffer.concat(chunks);
}

function announce(fixture: Fixture, originals: Originals): AnnouncedFixture {
  const { name, verdict, decision, match, extension = 'wav' } = fixture;
  const { audio, sidecar } = fixture.files(originals);
  const file = (part: AssetPart, bytes: Uint8Array): FixtureFile => ({
    part,
    fileName: `${name}.${part === 'audio' ? extension : 'sidecar'}`,
    mediaType:
      part === 'sidecar' ? 'application/octet-stream' : extension === 'mp3' ? 'audio/mpeg' : 'audio/wav',
    bytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    href: `/v1/sandbox/fixtures/${name}/${part}`,
  });
  return {
    name,
    verdict,
    good: verdict === 'valid',
    decision,
    ...defined({ match }),
    files: [file('audio', audio), ...(sidecar === undefined ? [] : [file('sidecar', sidecar)])],
  };
}
