/** An error at the start, for the operator. */
export class CassandraOpenError extends Error {
  override readonly name = 'CassandraOpenError';
}
