import { TakemarkError } from '../client/errors.js';
import type { Service } from './command.js';
import { errorText } from './file-errors.js';
import { ADDRESSES } from './service-address.js';

/** OpenSSL's and Node's codes of an answer that is not TLS. */
const NOT_TLS = /^(EPROTO|ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG)$/;

/**
 * Text of a failed call for its reader: with the address that was called wherever the address may be what is wrong.
 * Every other error has the text that `errorText` gives it.
 * @param address the listener's
 */
export function serviceErrorText(error: unknown, service: Service, address: string): string {
  if (!(error instanceof TakemarkError)) return errorText(error);
  const { option, variable } = ADDRESSES[service];
  const otherwise = `--${option} or ${variable} names another address`;
  switch (error.code) {
    case 'connection_failed':
    case 'timed_out':
    case 'tls_failed':
      return `no answer from the service at ${address}: ${error.message}${protocolHint(error, address)}; ${otherwise}`;
    case 'bad_response':
      return `an unexpected answer from ${address}: ${error.message}; ${otherwise}`;
  }
  // Every answer of a Takemark has the id of its request (rule 2.12); without one, another server has answered.
  const misdirected =
    error.reason === 'unknown_route' || (error.status !== undefined && error.requestId === undefined);
  return misdirected ? `${address} answers: ${error.message}` : errorText(error);
}

function protocolHint({ code, cause }: TakemarkError, address: string): string {
  const failure = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  if (code === 'tls_failed' && NOT_TLS.test(failure)) return ', as it does not speak https but perhaps http';
  const closed = code === 'connection_failed' && (failure === '' || failure === 'ECONNRESET');
  return closed && address.startsWith('http:') ? ', and it may speak https' : '';
}
