/** The format of the operator's bearer token. It fits an Authorization header and is too long to guess. */
export const OPERATOR_TOKEN_PATTERN = /^[\x21-\x7e]{16,256}$/;
