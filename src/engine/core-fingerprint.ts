/** SHA-256 of dist/core.wasm. Written by `npm run build:fingerprint`. */
export const CORE_FINGERPRINT = 'b45c2182fa3ab5e003e07db9cbf353d24a4a55f68f8d8004627530be96f5ad54';
