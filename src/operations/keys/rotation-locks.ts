import { DomainError } from '../../domain/errors.js';

/** How long a duplicate waits for the request before it. */
const WAIT_MS = 5000;

/** One rotation of a key at a time in this process; the others wait in line. */
export interface RotationClaims {
  /**
   * @returns gives the claim to the next in line; safe to call twice
   * @throws DomainError `conflict` / `rotation_in_progress` after 5 s
   */
  take(keyId: string): Promise<() => void>;
}

export function createRotationClaims(waitMs: number = WAIT_MS): RotationClaims {
  /** For each key that is being rotated, who waits for it. */
  const lines = new Map<string, (() => void)[]>();
  const claim = (keyId: string): (() => void) => {
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const next = lines.get(keyId)?.shift();
      if (next === undefined) lines.delete(keyId);
      else next();
    };
  };
  return {
    async take(keyId) {
      const line = lines.get(keyId);
      if (line === undefined) {
        lines.set(keyId, []);
        return claim(keyId);
      }
      await new Promise<void>((resolve, reject) => {
        const enter = (): void => {
          clearTimeout(timer);
          resolve();
        };
        const timer = setTimeout(() => {
          line.splice(line.indexOf(enter), 1);
          reject(
            new DomainError('conflict', 'The key is being rotated by another request.', {
              reason: 'rotation_in_progress',
            }),
          );
        }, waitMs);
        line.push(enter);
      });
      return claim(keyId);
    },
  };
}
