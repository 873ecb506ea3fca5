/** SHA-256 of dist/core.wasm. Written by `npm run build:fingerprint`. */
export const CORE_FINGERPRINT = 'e19fbfb4034c0873971abe0363cca703a41998a12d12982db698a8850cd156e3';
