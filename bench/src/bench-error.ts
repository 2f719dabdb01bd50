/** Prints its message without a stack trace. */
export class BenchError extends Error {
  readonly code = 'BENCH'
}
