/** SHA-256 of dist/core.wasm. Written by `npm run build:fingerprint`. */
export const CORE_FINGERPRINT = '6aad488dfe711923a27b73d6a4a1652898aff6713ee4f59ddfe975b28aad449a';
