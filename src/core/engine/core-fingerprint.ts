/** SHA-256 of dist/core.wasm. Written by `npm run build:fingerprint`. */
export const CORE_FINGERPRINT = 'be5313efa297a1429ad5794f0c7cf9f0dc6c5d63b11909572e8331e1ac0c3c22';
