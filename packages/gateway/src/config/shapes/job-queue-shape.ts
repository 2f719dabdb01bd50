/** How queues for requests that may wait are written down: each is for one lane of one vendor. */
import {
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
/** What waits is in the store's memory: less of it than a program would allow itself. */
const MAX_SIZE = 10_000
const REQUEST_BYTES = 256 * 1_024
const ANSWER_BYTES = 1_024 ** 2

const { lane: _, maxSize: __, ...settings } = jobQueueFields

const readQueue = object({
  vendor: text(),
  key: optional(text()),
  model: optional(text()),
  maxSize: optional(integer({ min: 1 }), MAX_SIZE),
  ...settings,
  timeoutMs: optional(duration({ min: 1 }), DAY_MS),
  concurrency: optional(integer({ min: 0 }), 10),
  maxRequestBytes: optional(size({ min: 1 }), REQUEST_BYTES),
  maxAnswerBytes: optional(size({ min: 1 }), ANSWER_BYTES),
  priorities: optional(
    described(readPriorities, () => ({
      type: 'object',
      additionalProperties: schemaOf(readPriority),
    })),
    {},
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

/** Queues of the vendors there are. */
export function linkQueues(
  queues: ReadonlyMap<string, Written> | undefined,
  path: string,
  vendors: ReadonlyMap<string, WrittenVendor>,
  problems: ConfigProblem[],
): readonly QueueConfig[] | undefined {
  if (queues === undefined) return undefined
  const lanes = new Map<string, string>()
  return [...queues].flatMap(([name, written]) => {
    // What is no queue, and queues of vendors that are none, have been complained of.
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

/** What is written as a key is not shown: it may be the key itself. */
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
