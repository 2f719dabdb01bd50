/** A bench cannot be run, for a reason that needs no stack to be understood. */
export class BenchError extends Error {
  readonly code = 'BENCH'
}
