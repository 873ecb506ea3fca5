/** The SHA-256 of dist/core.wasm. Written by `npm run build:fingerprint`. */
export const CORE_FINGERPRINT = '82f102a24e931261bf58936920e41b2111d085d650ecee94c4d6aa6929894017';
