/** Version of the client, which `User-Agent` names: the package's own. */
export const CLIENT_VERSION = '1.0.0';
