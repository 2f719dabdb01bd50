/** Loads the client library: the configured one, or the one that is installed. */
import type { Check } from '../../../core/options/checks.js'
import type { Warn } from '../setup/setup-error.js'
import type { Driver } from './driver.js'
import { ioredisDriver, loadIoredis } from './ioredis.js'
import { loadNodeRedis, nodeRedisDriver } from './node-redis.js'

const LOADERS = { redis: loadNodeRedis, ioredis: loadIoredis }
type Name = keyof typeof LOADERS
const NAMES = Object.keys(LOADERS) as Name[]

/** A package by its name, or the package itself. */
export const readDriver: Check<Name | Driver> = (value, path, problems) => {
  if (typeof value === 'string' && Object.hasOwn(LOADERS, value)) return value as Name
  // In this order, because ioredis has a `createClient`, too.
  const driver = ioredisDriver(value) ?? nodeRedisDriver(value)
  if (driver === undefined) {
    problems.push({
      path,
      message: "must be 'redis', 'ioredis' or one of these packages as a module",
    })
  }
  return driver as Driver
}

export async function loadDriver(wanted: Name | Driver | undefined, warn: Warn): Promise<Driver> {
  if (typeof wanted === 'object') return wanted
  const names = wanted === undefined ? NAMES : [wanted]
  const causes: unknown[] = []
  for (const name of names) {
    try {
      return await LOADERS[name]()
    } catch (cause) {
      causes.push(cause)
    }
  }
  const problem = new Error(
    wanted === 'ioredis'
      ? "the package 'ioredis' is missing: npm install ioredis, or pass your own client"
      : "the package 'redis' is missing: npm install redis, or pass your own client",
    { cause: causes[0] },
  )
  warn(problem.message)
  throw problem
}
