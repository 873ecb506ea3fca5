/** SHA-256 of dist/core.wasm. Written by `npm run build:fingerprint`. */
export const CORE_FINGERPRINT = '4812fdec483bc3bec09f4d8dd2a8b1f60f6dd3cfd3659ee5e58c739b8b4c98f3';
