/** SHA-256 of dist/core.wasm. Written by `npm run build:fingerprint`. */
export const CORE_FINGERPRINT = '16554d9353adad8a526f1eadb9b7936a233e58902172856064f6712de45bc6d2';
