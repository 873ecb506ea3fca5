/** Operations of the contract whose calls are counted and billed. */
export const BILLED_OPERATIONS = ['verify', 'identify'] as const;
export type BilledOperation = (typeof BILLED_OPERATIONS)[number];
