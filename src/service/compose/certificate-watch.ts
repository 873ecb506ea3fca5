import { defined } from '../../core/domain/defined.js';
import {
  daysLeft,
  type Validity,
  validityWarning,
  type WatchedCertificate,
} from '../../core/domain/validity.js';
import type { IssuingCertificates } from '../../core/ports/signing.js';
import type { Clock } from '../ports/system.js';
import type { TlsIdentity } from '../ports/tls-identity.js';
import type { CertificateDates } from '../telemetry/gauges.js';
import type { Telemetry } from '../telemetry/telemetry.js';

export interface CertificateWatch {
  /** Returns the certificates of the process, for the metrics. */
  list(): readonly CertificateDates[];
  /** Logs each warning when it starts to apply, and then once for each day. */
  report(telemetry: Pick<Telemetry, 'note' | 'warn'>): void;
}

interface Watched {
  readonly certificate: WatchedCertificate;
  readonly kid?: string;
  readonly validity: Validity;
}

/** What an operator does about the certificate of the partner listener. */
const TLS_RENEWAL = 'Replace its files. They are read again without a restart.';

/** The prefixes of the log events. */
const EVENTS: Readonly<Record<WatchedCertificate, string>> = {
  signing: 'signer',
  authority: 'authority',
  tls: 'tls',
};

/** Creates the watch over the validity of the certificates that this process uses. */
export function createCertificateWatch({
  certificates: { chain, renewal },
  tls,
  clock,
}: {
  readonly certificates: IssuingCertificates;
  /** The certificate of the partner listener. Undefined without TLS. */
  readonly tls: () => Pick<TlsIdentity, 'beginsAt' | 'expiresAt'> | undefined;
  readonly clock: Clock;
}): CertificateWatch {
  const logged = new Map<WatchedCertificate, string>();
  const now = (): number => Math.floor(clock.now() / 1000);
  const watched = (): readonly Watched[] => {
    const identity = tls();
    return identity === undefined
      ? chain
      : [
          ...chain,
          {
            certificate: 'tls',
            validity: { notBefore: identity.beginsAt, notAfter: identity.expiresAt },
          },
        ];
  };
  return {
    list: () =>
      watched().map(({ certificate, validity }) => ({
        certificate,
        validity,
        warning: validityWarning(validity, now()),
      })),
    report(telemetry) {
      for (const { certificate, kid, validity } of watched()) {
        const warning = validityWarning(validity, now());
        const days = daysLeft(validity, now());
        const line = warning === undefined ? '' : `${warning} ${validity.notAfter} ${days}`;
        if (logged.get(certificate) === line) continue;
        logged.set(certificate, line);
        if (warning === undefined) continue;
        const { notBefore, notAfter } = validity;
        const event = EVENTS[certificate];
        const facts = { ...defined({ kid }), action: certificate === 'tls' ? TLS_RENEWAL : renewal };
        if (warning === 'not_begun') telemetry.warn(`${event}_not_begun`, { notBefore, ...facts });
        else if (warning === 'expired') telemetry.warn(`${event}_expired`, { notAfter, ...facts });
        else if (warning === '90_days') telemetry.note(`${event}_ending`, { notAfter, days, ...facts });
        else telemetry.warn(`${event}_ending`, { notAfter, days, ...facts });
      }
    },
  };
}
