/** The operations of the contract whose calls are billed. */
export const BILLED_OPERATIONS = ['verify', 'identify'] as const;
export type BilledOperation = (typeof BILLED_OPERATIONS)[number];

// Quota windows are UTC calendar months. All times are unix seconds.

export function monthOf(at: number): string {
  return new Date(at * 1000).toISOString().slice(0, 7);
}

export function dayOf(at: number): string {
  return new Date(at * 1000).toISOString().slice(0, 10);
}

export function monthStart(at: number): number {
  const date = new Date(at * 1000);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1) / 1000;
}

/** Returns the time at which the window that contains `at` ends and the next window starts. */
export function monthEnd(at: number): number {
  const date = new Date(at * 1000);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1) / 1000;
}

export function secondsToNextMonth(at: number): number {
  return monthEnd(at) - at;
}
