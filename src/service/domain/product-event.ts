/** The events of product telemetry. The list of names is closed, so that telemetry cannot carry content. */
export const PRODUCT_EVENTS = [
  'app_started',
  'download_started',
  'verify_started',
  'verify_completed',
  'verify_failed',
  'verify_retried',
  'upload_failed',
  'pair_verified',
  'report_opened',
  'review_opened',
  'key_rotated',
] as const;
export type ProductEvent = (typeof PRODUCT_EVENTS)[number];

export function isProductEvent(name: string): name is ProductEvent {
  return (PRODUCT_EVENTS as readonly string[]).includes(name);
}
