import type { SignatureAlgorithm } from '../../../core/domain/parsed-credential.js';
import { SECRET_PURPOSES, type SecretPurpose } from '../../../core/domain/secret-purposes.js';
import type { Clock } from '../../ports/system.js';
import { type ClusterBundle, parseClusterBundle } from './cluster-bundle.js';
import { makeSigningPems } from './load-signing.js';
import { newOperatorToken } from './operator-token.js';
import { newSecret, type StoredSecret } from './secrets.js';

/** Secrets that can be replaced, each by itself. */
export const ROTATED_PURPOSES = [...SECRET_PURPOSES, 'signing', 'operator-token'] as const;
export type RotatedPurpose = (typeof ROTATED_PURPOSES)[number];

export const ROTATION_STEPS = ['add', 'use', 'drop'] as const;
export type RotationStep = (typeof ROTATION_STEPS)[number];

/**
 * Keys, audit logs, rows, the topic of erasures and credentials live on with what made them: of these the
 * former ones are kept for good.
 */
const KEPT: readonly RotatedPurpose[] = ['key-pepper', 'audit', 'event', 'row', 'signing'];
/**
 * The longest that anything else made with a secret lives is a day, a rotation's replay; an hour for the
 * rollout of the step before.
 */
const DROP_AFTER_SECONDS = 25 * 3600;

export interface BundleRotation {
  readonly step: RotationStep;
  /** Secrets to replace: all by default, with `drop` those that can be dropped. */
  readonly purposes?: readonly RotatedPurpose[] | undefined;
  /** Drops what was replaced only a while ago, too. */
  readonly early?: boolean;
  readonly environment: string;
  readonly algorithm: SignatureAlgorithm;
  readonly clock: Clock;
  readonly random: (length: number) => Uint8Array;
}

/**
 * Performs a step of replacing secrets. At no moment does a process meet a secret that it does not know. `add` makes
 * a new secret known. When every process has that bundle, `use` makes it the current one. When every process has that
 * one, `drop` forgets the former secret. Processes with the bundle before and after a step work side by side.
 * @param text of the bundle
 * @param name of its file, for messages
 * @returns the text of the next bundle
 * @throws Error for the operator, where a purpose is not ready for the step
 */
export function rotateClusterBundle(text: string, name: string, rotation: BundleRotation): string {
  const { step, environment, early = false } = rotation;
  const now = Math.floor(rotation.clock.now() / 1000);
  const purposes =
    rotation.purposes ?? ROTATED_PURPOSES.filter((purpose) => step !== 'drop' || !KEPT.includes(purpose));
  let bundle = parseClusterBundle(text, name);
  if (bundle.environment !== environment)
    throw new Error(`${name} belongs to the environment ${bundle.environment}, not ${environment}`);
  for (const purpose of purposes) {
    if (step === 'drop' && KEPT.includes(purpose))
      throw new Error(
        `${purpose}: data made with the old secrets always needs them, so they cannot be dropped`,
      );
    if (step === 'add' && hasNext(bundle, purpose))
      throw new Error(
        `${purpose}: the secret that was added earlier is not in use yet: run --step use first`,
      );
    if (step === 'use' && !hasNext(bundle, purpose))
      throw new Error(
        `${purpose}: there is no new secret to use: run --step add first, and deploy that bundle to every process`,
      );
    if (step === 'drop') assertDroppable(purpose, formerTimes(bundle, purpose), now, early);
    bundle = steps[step](bundle, purpose, rotation, now);
  }
  return `${JSON.stringify(bundle, null, 2)}\n`;
}

function assertDroppable(
  purpose: RotatedPurpose,
  former: readonly number[],
  now: number,
  early: boolean,
): void {
  if (former.length === 0) throw new Error(`${purpose}: there is no old secret to drop`);
  if (!early && former.some((since) => now < since + DROP_AFTER_SECONDS))
    throw new Error(
      `${purpose}: the old secret was replaced less than 25 hours ago and may still be needed; --early drops it anyway`,
    );
}

const steps: Readonly<
  Record<
    RotationStep,
    (bundle: ClusterBundle, purpose: RotatedPurpose, rotation: BundleRotation, now: number) => ClusterBundle
  >
> = {
  add(bundle, purpose, rotation) {
    if (purpose === 'signing') return { ...bundle, nextSigning: makeSigningPems(rotation) };
    if (purpose === 'operator-token')
      return { ...bundle, nextOperatorToken: newOperatorToken(rotation.random) };
    const [current, ...former] = bundle.secrets[purpose];
    return withSecrets(bundle, purpose, [current!, { ...newSecret(rotation.random), next: true }, ...former]);
  },
  use(bundle, purpose, _rotation, now) {
    if (purpose === 'signing') {
      const { nextSigning, formerSigning = [], signing, ...rest } = bundle;
      return {
        ...rest,
        signing: nextSigning!,
        formerSigning: [{ certificate: signing.certificate, authority: signing.authority }, ...formerSigning],
      };
    }
    if (purpose === 'operator-token') {
      const { nextOperatorToken, operatorToken, ...rest } = bundle;
      return {
        ...rest,
        operatorToken: nextOperatorToken!,
        formerOperatorToken: { token: operatorToken, since: now },
      };
    }
    const known = bundle.secrets[purpose];
    const { id, key } = known.find(({ next }) => next)!;
    return withSecrets(bundle, purpose, [
      { id, key },
      { ...known[0]!, formerSince: now },
      ...known.slice(1).filter(({ next }) => next !== true),
    ]);
  },
  drop(bundle, purpose) {
    if (purpose === 'operator-token') {
      const { formerOperatorToken, ...rest } = bundle;
      return rest;
    }
    return withSecrets(
      bundle,
      purpose as SecretPurpose,
      bundle.secrets[purpose as SecretPurpose].filter(({ formerSince }) => formerSince === undefined),
    );
  },
};

function withSecrets(
  bundle: ClusterBundle,
  purpose: SecretPurpose,
  known: readonly StoredSecret[],
): ClusterBundle {
  return { ...bundle, secrets: { ...bundle.secrets, [purpose]: known } };
}

function hasNext(bundle: ClusterBundle, purpose: RotatedPurpose): boolean {
  if (purpose === 'signing') return bundle.nextSigning !== undefined;
  if (purpose === 'operator-token') return bundle.nextOperatorToken !== undefined;
  return bundle.secrets[purpose].some(({ next }) => next);
}

function formerTimes(bundle: ClusterBundle, purpose: RotatedPurpose): readonly number[] {
  if (purpose === 'operator-token')
    return bundle.formerOperatorToken === undefined ? [] : [bundle.formerOperatorToken.since];
  if (purpose === 'signing') return [];
  return bundle.secrets[purpose].flatMap(({ formerSince }) => formerSince ?? []);
}
