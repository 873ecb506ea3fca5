/** SHA-256 of dist/core.wasm. Written by `npm run build:fingerprint`. */
export const CORE_FINGERPRINT = '13e26477940bf29337ac3b9837297054fc5e1d03530ba5cce5c68c295bd84255';
