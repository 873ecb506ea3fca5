/** Form of the operator's bearer token: what an Authorization header carries, and too long to be guessed. */
export const OPERATOR_TOKEN_PATTERN = /^[\x21-\x7e]{16,256}$/;
