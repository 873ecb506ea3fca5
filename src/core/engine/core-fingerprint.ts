/** SHA-256 of dist/core.wasm. Written by `npm run build:fingerprint`. */
export const CORE_FINGERPRINT = '4c2b5f58dedfa0a045b99e9046369a65c51121510c3b97b4b25a020bcdd2eacc';
