/** The format of the operator's bearer token. It fits an Authorization header and is too long to guess. */
export const OPERATOR_TOKEN_PATTERN = /^[\x21-\x7e]{16,256}$/;

/** A token of one person or program, by whose name log lines and audit entries identify it. */
export interface NamedToken {
  readonly name: string;
  readonly token: string;
}
