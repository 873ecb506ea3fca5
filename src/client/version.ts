/** The version of the client package, which `User-Agent` names too. The client has its own changelog. */
export const CLIENT_VERSION = '1.0.0';

/** The major version of the contract that the client supports. */
export const CONTRACT_MAJOR = 3;
