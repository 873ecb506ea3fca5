/** SHA-256 of dist/core.wasm. Written by `npm run build:fingerprint`. */
export const CORE_FINGERPRINT = 'ec1c948f342b8de90e3ee2c68df9c3ff14714c7c19b03130ba3ff6b4849d4489';
