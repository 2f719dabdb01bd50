/** An error whose message is printed without a stack trace. */
export class BenchError extends Error {
  readonly code = 'BENCH'
}
