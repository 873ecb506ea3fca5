/** SHA-256 of dist/core.wasm. Written by `npm run build:fingerprint`. */
export const CORE_FINGERPRINT = '38f041007d4256efb3b13ebf3a43dd0e93a2de8646cd4105114ebe3cf991a21c';
