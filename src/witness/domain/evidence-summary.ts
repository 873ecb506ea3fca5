/**
 * The summary of a proof's evidence as stored. It is settled at issuing and with each change of the overlay,
 * so that a list reads only the records of its entries.
 */
import { defined } from '../../core/domain/defined.js';
import type { EvidenceFacts } from './evidence.js';
import type { EvidenceSummary } from './evidence-report.js';
import type { DeviceId } from './trace.js';

/** The version of the summary's content. It increases when the same report gets another summary. */
export const SUMMARY_VERSION = 1;

export interface StoredSummary extends EvidenceSummary {
  readonly version: number;
  /** The MAC of the overlay that the summary includes. Empty if there was none. */
  readonly overlayMac: string;
  /**
   * The capture device. Absent without a trace, and if the facts already include the device's revocation. A
   * later revocation is added to the summary at each read, because it concerns every proof of the device.
   */
  readonly deviceId?: DeviceId;
}

/**
 * Returns the summary of a report, to be stored with its proof.
 * @param overlayMac the MAC of the overlay that the report includes
 * @param device the capture device at issuing. Absent without a trace
 */
export function settleSummary(
  { status, counts, codes }: EvidenceSummary,
  overlayMac = '',
  device?: EvidenceFacts['session']['device'],
): StoredSummary {
  const deviceId = device === undefined || device.standing === 'revoked' ? undefined : device.deviceId;
  return defined({ version: SUMMARY_VERSION, overlayMac, deviceId, status, counts, codes });
}

/** Returns the part of a stored summary that partners see. */
export function sentSummary({ status, counts, codes }: StoredSummary): EvidenceSummary {
  return { status, counts, codes };
}

/** The code of the finding that a device was revoked after issuing (rule 9.32). */
export const DEVICE_REVOKED = 'trace_device_revoked';

/** Returns a summary with the finding that the capture device was revoked after issuing (rule 9.32). */
export function withDeviceRevoked({ counts, codes }: EvidenceSummary): EvidenceSummary {
  return {
    status: 'needs_review',
    counts: { ...counts, unverifiable: counts.unverifiable + 1 },
    codes: [...new Set([...codes, DEVICE_REVOKED])].sort(),
  };
}
