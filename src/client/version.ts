/** Version of the client, which its package has and `User-Agent` names; it has a changelog of its own. */
export const CLIENT_VERSION = '1.0.0';
