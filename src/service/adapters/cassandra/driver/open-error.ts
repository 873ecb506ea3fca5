/** Error at start, for the operator. */
export class CassandraOpenError extends Error {
  override readonly name = 'CassandraOpenError';
}
