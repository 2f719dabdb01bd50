/** `workers`: the number of processes that serve the data port. */
import { availableParallelism } from 'node:os'
import { type Check, described } from 'spillway/options'
import type { GatewayConfig } from '../config.js'
import type { ConfigProblem } from '../config-error.js'

export const MAX_WORKERS = 256

/** Returns the number of workers, or undefined if `value` is neither `auto` nor such a number. */
export function workersOf(value: unknown): number | undefined {
  if (value === 'auto') return availableParallelism()
  const isCount = Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MAX_WORKERS
  return isCount ? Number(value) : undefined
}

const check: Check<number> = (value, path, problems) => {
  const workers = workersOf(value)
  if (workers !== undefined) return workers
  const found = value === undefined ? 'nothing' : JSON.stringify(value)
  const expected = `'auto' (one for each core) or an integer from 1 to ${MAX_WORKERS}`
  problems.push({ path, message: `must be ${expected}, got ${found}` })
  return Number.NaN
}

export const readWorkers = described(check, {
  anyOf: [{ const: 'auto' }, { type: 'integer', minimum: 1, maximum: MAX_WORKERS }],
})

export const WORKERS_NEED_REDIS =
  'needs redis: workers are processes that share limits and breakers only through Redis, ' +
  'so without it each would spend the whole limit; set redis: env:REDIS_URL, or workers: 1'

/** `auto` counts as more than one, so that the same file is valid or invalid on every machine. */
export function checkWorkers(
  written: object,
  { workers, redis }: Pick<GatewayConfig, 'workers' | 'redis'>,
  path: string,
  problems: ConfigProblem[],
): void {
  if (redis !== undefined || Object.hasOwn(written, 'redis')) return
  const isAuto = (written as { workers?: unknown }).workers === 'auto'
  if (workers > 1 || isAuto) {
    problems.push({ path: `${path}.workers`, message: WORKERS_NEED_REDIS })
  }
}
