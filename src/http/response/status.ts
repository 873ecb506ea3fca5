import { STATUS_OF_ERROR } from '../../contract/error-codes.js';
import type { ErrorStatus } from '../../contract/route.js';
import type { ErrorCode } from '../../domain/errors.js';

/** The contract's one table of codes and statuses, read from the code's side. */
export const STATUS_OF_CODE = Object.fromEntries(
  Object.entries(STATUS_OF_ERROR).map(([status, { code }]) => [code, Number(status)]),
) as Readonly<Record<ErrorCode, ErrorStatus>>;
