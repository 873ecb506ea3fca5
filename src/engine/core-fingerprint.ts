/** SHA-256 of dist/core.wasm. Written by `npm run build:fingerprint`. */
export const CORE_FINGERPRINT = 'd67d10ea1bf5b03de2a2654cf36ae27a1fa80f56f97f1ea83116579ef957483e';
