/** Freezes a value and all that it has, so that many callers can share it. Bytes cannot be frozen. */
export function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return;
  for (const member of Object.values(value)) freeze(member);
  Object.freeze(value);
}
