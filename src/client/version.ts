/** Version of the client, which its package has and `User-Agent` names; it has a changelog of its own. */
export const CLIENT_VERSION = '1.0.0';

/** Major version of the contract that the client speaks. */
export const CONTRACT_MAJOR = 3;
