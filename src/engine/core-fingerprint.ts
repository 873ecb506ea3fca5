/** SHA-256 of dist/core.wasm. Written by `npm run build:fingerprint`. */
export const CORE_FINGERPRINT = '25fca5e7453d71a1191f966cfb3e0e7bbe362074f9f5d2c119bc614f7b6a1ca5';
