import { TakemarkError } from '../client/errors.js';
import type { Service } from './command.js';
import { errorText } from './file-errors.js';
import { ADDRESSES } from './service-address.js';

/** The OpenSSL and Node error codes for a response that is not TLS. */
const NOT_TLS = /^(EPROTO|ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG)$/;

/**
 * Returns the message of a failed call. The message names the address if the address may be wrong. Any other
 * error has the text of `errorText`.
 * @param address the address of the listener
 */
export function serviceErrorText(error: unknown, service: Service, address: string): string {
  if (!(error instanceof TakemarkError)) return errorText(error);
  const { option, variable } = ADDRESSES[service];
  const otherwise = `set another address with --${option} or ${variable}`;
  switch (error.code) {
    case 'connection_failed':
    case 'timed_out':
    case 'tls_failed':
      return `no answer from the service at ${address}: ${error.message}${protocolHint(error, address)}; ${otherwise}`;
    case 'bad_response':
      return `unexpected response from ${address}: ${error.message}; ${otherwise}`;
  }
  // Every Takemark response has a request id (rule 2.12). Without it, another server answered.
  const misdirected =
    error.reason === 'unknown_route' || (error.status !== undefined && error.requestId === undefined);
  return misdirected ? `${address} answers: ${error.message}` : errorText(error);
}

function protocolHint({ code, cause }: TakemarkError, address: string): string {
  const failure = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  if (code === 'tls_failed' && NOT_TLS.test(failure))
    return ' (the server does not speak https, perhaps http)';
  const closed = code === 'connection_failed' && (failure === '' || failure === 'ECONNRESET');
  return closed && address.startsWith('http:') ? ' (the server may speak https)' : '';
}
