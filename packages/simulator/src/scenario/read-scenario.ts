/** Reads a scenario, or lists every mistake in it with its path. */
import type { GuardOptions } from 'spillway'
import {
  arrayOf,
  bool,
  type Check,
  duration,
  integer,
  number,
  type OptionProblem,
  object,
  oneOf,
  optional,
  readGuardOptions,
  readPriority,
  renamed,
  text,
  together,
  validate,
} from 'spillway/options'
import { readEvent } from './events.js'
import { METRIC_NAMES } from './metric-names.js'
import type { Scenario } from './scenario.js'
import { readSpread } from './spread.js'

const share = number({ min: 0, max: 1 })
const ms = duration({ min: 0 })

const readVendor = object({
  serviceMs: readSpread,
  travelMs: optional(readSpread, 0),
  capacity: optional(integer({ min: 1 })),
  beyondCapacity: optional(oneOf('queue', 'slow'), 'queue'),
  limits: optional(
    arrayOf(
      object({
        limit: integer({ min: 1 }),
        windowMs: duration({ min: 1 }),
        unit: optional(text(), 'requests'),
      }),
    ),
    [],
  ),
  failureRate: optional(share, 0),
  hangRate: optional(share, 0),
  cancels: optional(bool(), false),
})

const readNaive = object({
  attempts: optional(integer({ min: 1 }), 3),
  timeoutMs: optional(duration({ min: 1 }), 1_000),
  backoff: optional(oneOf('none', 'constant', 'exponential'), 'constant'),
  delayMs: optional(ms, 100),
  concurrency: optional(integer({ min: 1 })),
})

const readCost: Check<Readonly<Record<string, number>>> = (value, path, problems) => {
  const units = typeof value === 'object' && value !== null ? Object.keys(value) : []
  const fields = Object.fromEntries(units.map((unit) => [unit, number({ min: 0 })]))
  return object(fields)(value, path, problems)
}

const clientFields = object({
  name: text(),
  rps: optional(number({ min: 0.001 })),
  callers: optional(integer({ min: 1 })),
  burst: optional(integer({ min: 1 })),
  thinkMs: optional(readSpread, 0),
  fromMs: optional(ms, 0),
  untilMs: optional(ms),
  pod: optional(integer({ min: 0 })),
  priority: optional(readPriority),
  tier: optional(text()),
  users: optional(integer({ min: 1 })),
  lane: optional(text()),
  cost: optional(readCost),
  timeoutMs: duration({ min: 1 }),
  retries: optional(object({ attempts: integer({ min: 1 }), delayMs: readSpread })),
  hangUps: optional(object({ share, afterMs: readSpread })),
})

const readClient = together(clientFields, ({ rps, callers, burst }, path, problems) => {
  const given = [rps, callers, burst].filter((each) => each !== undefined).length
  if (given === 1) return
  problems.push({ path, message: 'must have one of rps (open loop), callers (closed loop), burst' })
})

const readExpectation = together(
  object({
    metric: renamed(oneOf(...METRIC_NAMES), { toldP99Ms: 'endedP99Ms' }),
    atLeast: optional(number({ min: 0 })),
    atMost: optional(number({ min: 0 })),
    fromMs: optional(ms, 0),
    untilMs: optional(ms),
    client: optional(text()),
    says: optional(text()),
  }),
  ({ atLeast, atMost }, path, problems) => {
    if (atLeast !== undefined || atMost !== undefined) return
    problems.push({ path, message: 'must have atLeast, atMost or both' })
  },
)

const readStore: Check<
  { latencyMs: ReturnType<typeof readSpread>; commandTimeoutMs: number } | 'memory'
> = (value, path, problems) => {
  if (value === 'memory') return value
  return object({
    latencyMs: optional(readSpread, 1),
    commandTimeoutMs: optional(duration({ min: 1 }), 100),
  })(value, path, problems)
}

const fields = object({
  name: text(),
  title: text(),
  story: text(),
  durationMs: duration({ min: 100 }),
  pods: optional(integer({ min: 1 }), 1),
  clocks: optional(object({ skewMs: optional(ms, 0), driftPpm: optional(number({ min: 0 }), 0) }), {
    skewMs: 0,
    driftPpm: 0,
  }),
  autoscale: optional(
    object({
      min: integer({ min: 1 }),
      max: integer({ min: 1 }),
      perPod: number({ min: 0.001 }),
      everyMs: optional(duration({ min: 1 }), 5_000),
      startMs: optional(ms, 5_000),
    }),
  ),
  store: optional(readStore, { latencyMs: 1, commandTimeoutMs: 100 }),
  vendor: readVendor,
  guard: readGuardOptions as Check<GuardOptions>,
  naive: optional(readNaive, {
    attempts: 3,
    timeoutMs: 1_000,
    backoff: 'constant' as const,
    delayMs: 100,
    concurrency: undefined,
  }),
  clients: arrayOf(readClient),
  events: optional(arrayOf(readEvent), []),
  expect: arrayOf(readExpectation),
})

const readWhole = together(fields, (scenario, path, problems) => {
  checkNames(scenario, path, problems)
  checkFigures(scenario, path, problems)
})

export type CheckedScenario = ReturnType<typeof fields>
export type CheckedClient = ReturnType<typeof clientFields>
export type CheckedExpectation = ReturnType<typeof readExpectation>
export type CheckedNaive = ReturnType<typeof readNaive>
export type CheckedVendor = ReturnType<typeof readVendor>

/**
 * Validates a scenario and fills in its defaults. `where` is the name in error messages: a file, or the
 * scenario.
 */
export function readScenario(scenario: Scenario | unknown, where = 'scenario'): CheckedScenario {
  return validate(where, scenario, readWhole)
}

function checkNames({ clients, expect }: CheckedScenario, path: string, problems: OptionProblem[]) {
  if (clients.length === 0) problems.push({ path: `${path}.clients`, message: 'must not be empty' })
  const names = clients.map(({ name }) => name)
  for (const [index, { client }] of expect.entries()) {
    if (client === undefined || names.includes(client)) continue
    const message = `must be one of the clients, ${names.join(', ')}, got "${client}"`
    problems.push({ path: `${path}.expect[${index}].client`, message })
  }
}

/** A share of something needs that something. */
function checkFigures(
  { vendor, expect }: CheckedScenario,
  path: string,
  problems: OptionProblem[],
) {
  for (const [index, { metric }] of expect.entries()) {
    const at = `${path}.expect[${index}].metric`
    if ((metric === 'goodput' || metric === 'vendorAtOnce') && vendor.capacity === undefined) {
      problems.push({ path: at, message: `needs vendor.capacity: ${metric} is a share of it` })
    }
    if (metric === 'worstWindow' && vendor.limits.length === 0) {
      problems.push({
        path: at,
        message: 'needs vendor.limits, because it is a share of the first limit',
      })
    }
  }
}
