/** SHA-256 of dist/core.wasm. Written by `npm run build:fingerprint`. */
export const CORE_FINGERPRINT = '526ad3707cb5d19d6f4d7cfe0ed0e964b1055860f652000071d54b5d0fbbe88c';
