/** Format of job queues: each serves one lane of one vendor. */
import {
  about,
  type Check,
  described,
  duration,
  integer,
  jobQueueFields,
  object,
  optional,
  readPriority,
  schemaOf,
  suggest,
  text,
} from 'spillway/options'
import type { QueueConfig } from '../config.js'
import type { ConfigProblem } from '../config-error.js'
import { size } from './byte-size.js'
import { readNamedMap } from './named-map.js'
import type { WrittenVendor } from './vendor-shape.js'

const DAY_MS = 86_400_000
/** Waiting jobs use memory of the store, so the default is lower than in the library. */
const MAX_SIZE = 10_000
const REQUEST_BYTES = 256 * 1_024
const ANSWER_BYTES = 1_024 ** 2

const { lane: _, maxSize: __, ...settings } = jobQueueFields

const readQueue = object({
  vendor: about('Vendor of the requests that it accepts.', text()),
  key: about(
    "Name of the vendor's key that its jobs use. Default: the first key.",
    optional(text()),
  ),
  model: about(
    'Model of the requests that it accepts; required except for `http`. Default: none.',
    optional(text()),
  ),
  maxSize: optional(integer({ min: 1 }), MAX_SIZE),
  ...settings,
  timeoutMs: about(
    'A job that has not started by then becomes a dead letter. A request may set a shorter time.',
    optional(duration({ min: 1 }), DAY_MS),
  ),
  concurrency: about(
    'Jobs at once in each gateway. With 0, this gateway accepts jobs and others run them.',
    optional(integer({ min: 0 }), 10),
  ),
  maxRequestBytes: about(
    'A request with a larger body is answered synchronously.',
    optional(size({ min: 1 }), REQUEST_BYTES),
  ),
  maxAnswerBytes: about(
    'A larger answer is a failure of the job.',
    optional(size({ min: 1 }), ANSWER_BYTES),
  ),
  priorities: about(
    'Priority of jobs by tier. Default: that of the caller.',
    optional(
      described(readPriorities, () => ({
        type: 'object',
        additionalProperties: schemaOf(readPriority),
      })),
      {},
    ),
  ),
})

/** By tier. */
function readPriorities(
  value: unknown,
  path: string,
  problems: ConfigProblem[],
): QueueConfig['priorities'] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    problems.push({ path, message: 'must be an object with a priority for each tier' })
    return {}
  }
  const entries = Object.entries(value).map(([tier, each]) => {
    return [tier, readPriority(each, `${path}.${tier}`, problems)] as const
  })
  return Object.fromEntries(entries)
}

type Written = ReturnType<typeof readQueue>

export const readQueues: Check<ReadonlyMap<string, Written>> = readNamedMap(
  'queue',
  readQueue,
  () => schemaOf(readQueue),
)

/** Checks that the vendor, model and key of each job queue exist. */
export function linkQueues(
  queues: ReadonlyMap<string, Written> | undefined,
  path: string,
  vendors: ReadonlyMap<string, WrittenVendor>,
  problems: ConfigProblem[],
): readonly QueueConfig[] | undefined {
  if (queues === undefined) return undefined
  const lanes = new Map<string, string>()
  return [...queues].flatMap(([name, written]) => {
    // Invalid queues and unknown vendors were reported before.
    if (written?.vendor === undefined || vendors.size === 0) return []
    const at = `${path}.${name}`
    const { vendor, key, model, timeoutMs, concurrency, priorities, ...rest } = written
    const { maxRequestBytes, maxAnswerBytes, ...ofQueue } = rest
    checkVendor(written, at, vendors, problems)
    const lane = JSON.stringify([vendor, key ?? vendors.get(vendor)?.keyNames?.[0], model])
    const before = lanes.get(lane)
    if (before !== undefined) {
      const message = `is for what ${path.slice(1)}.${before} is for: another vendor, key or model`
      problems.push({ path: at, message, at: 'key' })
    }
    lanes.set(lane, name)
    return [
      {
        name,
        vendor,
        key,
        model,
        settings: ofQueue,
        timeoutMs,
        concurrency,
        priorities,
        maxRequestBytes,
        maxAnswerBytes,
      },
    ]
  })
}

/** A value in place of a key is not shown, because it may be the key. */
function checkVendor(
  { vendor, key, model }: Written,
  at: string,
  vendors: ReadonlyMap<string, WrittenVendor>,
  problems: ConfigProblem[],
): void {
  const known = vendors.get(vendor)
  if (known === undefined) {
    const message = `there is no vendor of this name; ${hint(vendor, [...vendors.keys()])}`
    problems.push({ path: `${at}.vendor`, message })
    return
  }
  if (key !== undefined && known.keyNames?.includes(key) === false) {
    const keys = known.keyNames.length === 0 ? 'it has none' : hint(key, known.keyNames)
    const message = `vendor '${vendor}' has no key of this name; ${keys}`
    problems.push({ path: `${at}.key`, message })
  }
  if (known.protocol === 'http' && model !== undefined) {
    const message = 'has no meaning with protocol http'
    problems.push({ path: `${at}.model`, message, at: 'key' })
  }
  if (known.protocol !== undefined && known.protocol !== 'http' && model === undefined) {
    const message = `must be given: vendors of protocol ${known.protocol} count each model apart`
    problems.push({ path: `${at}.model`, message, at: 'key' })
  }
}

function hint(name: string, known: readonly string[]): string {
  const close = suggest(name, known)
  return close === undefined ? `known: ${known.join(', ')}` : `did you mean '${close}'?`
}
