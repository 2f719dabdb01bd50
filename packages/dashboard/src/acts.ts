/**
 * Operator actions of the page, from any pod for the whole fleet. Each action is one row: its fields, its object and
 * its effect. Guards are operated through `operate/`; the other actions emit the same event, so there is one audit
 * log.
 */
import { SpillwayError } from 'spillway'
import type { SharedGuard, SpillwayInternals } from 'spillway/internal'
import { createPodId, emit, operatorOf, packCommand } from 'spillway/internal'
import type { OperatorRequest } from 'spillway/operate'
import {
  bool,
  type Check,
  type Checked,
  duration,
  type Fields,
  integer,
  OptionsError,
  object,
  oneOf,
  optional,
  text,
  validate,
} from 'spillway/options'
import { EVERY_LANE, isShortened, namesShownAs, shown } from './shown.js'
import type { Act } from './wire/acts.js'
import type { DemoState } from './wire/hello.js'

/** Switches on the page that a demo offers. */
export interface DashboardDemo {
  /** Current state of the switches. */
  state(): DemoState
  /** Sets the given switches. */
  set(change: Partial<DemoState>): void | Promise<void>
}

/** Name and address of the operator. */
export interface Who {
  by: string
  from: string
}

export interface ActSurroundings {
  inside: SpillwayInternals
  demo: DashboardDemo | undefined
}

/** The object does not exist, or the action is impossible in its current state. */
class ActProblem extends Error {
  readonly status: 404 | 409 | 503

  constructor(status: 404 | 409 | 503, message: string) {
    super(message)
    this.status = status
  }
}

const LONGEST_MS = 30 * 86_400_000
const forMs = duration({ min: 1_000, max: LONGEST_MS })
const anyWhy = optional(text())
const onLane = { guard: text(), lane: optional(text()) }

type Done = (request: never, around: ActSurroundings, by: Who) => Promise<string>

function row<F extends Fields>(
  fields: F,
  on: (request: Checked<F>) => string,
  act: (request: Checked<F>, around: ActSurroundings, by: Who) => Promise<string>,
) {
  return {
    check: object({ act: text(), why: anyWhy, ...fields }) as unknown as Check<never>,
    on: on as (request: never) => string,
    act: act as Done,
  }
}

const laneOf = ({ guard, lane }: { guard: string; lane: string | undefined }) =>
  lane === undefined ? guard : `${guard} / ${lane}`

const ACTS = {
  isolate: row({ ...onLane, forMs }, laneOf, (request, around, by) =>
    operate(around, { action: 'isolate', ...place(request), forMs: request.forMs, ...by }),
  ),
  release: row(onLane, laneOf, (request, around, by) =>
    operate(around, { action: 'release', ...place(request), ...by }),
  ),
  // Closing a breaker by hand also ends all isolations.
  reset: row(onLane, laneOf, (request, around, by) =>
    operate(around, { action: 'close', ...place(request), ...by }),
  ),
  pause: row({ ...onLane, forMs }, laneOf, (request, around, by) =>
    operate(around, { action: 'pause', ...place(request), forMs: request.forMs, ...by }),
  ),
  limit: row(
    { guard: text(), id: text(), limit: integer({ min: 1 }), forMs },
    ({ guard, id }) => `${guard} / ${id}`,
    ({ guard, id, limit, forMs }, around, by) =>
      operate(around, { action: 'override', guard, unit: id, limit, forMs, ...by }),
  ),
  'release-key': row(
    { guard: text(), key: text() },
    ({ guard, key }) => `${guard} / ${key}`,
    ({ guard, key }, around, by) => operate(around, { action: 'release-key', guard, key, ...by }),
  ),
  drain: row(
    { pod: text() },
    ({ pod }) => pod,
    (request, around, by) => drain(request, around, by),
  ),
  replay: row(
    { queue: text(), id: optional(text()) },
    ({ queue }) => queue,
    (request, around, by) => replay(request, around, by),
  ),
  demo: row(
    { load: optional(bool()), broken: optional(bool()) },
    () => 'demo',
    (request, around, by) => switchDemo(request, around, by),
  ),
} as const satisfies Record<Act['act'], unknown>

const ACT_NAMES = Object.keys(ACTS) as Act['act'][]
const readName = oneOf(...ACT_NAMES)

/** The actions that are available here. */
export function actsOf({ demo }: ActSurroundings): Act['act'][] {
  return ACT_NAMES.filter((name) => name !== 'demo' || demo !== undefined)
}

export interface CheckedAct {
  name: Act['act']
  /** The object of the action. */
  on: string
  perform(by: Who): Promise<string>
}

/** Throws an `OptionsError` if it is invalid. */
export function readAct(value: unknown, around: ActSurroundings): CheckedAct {
  const name = validate('act', (value as { act?: unknown } | null)?.act, readName)
  const { check, on, act } = ACTS[name]
  const request = validate('act', value, check)
  return { name, on: on(request), perform: (by) => act(request, around, by) }
}

function place({ guard, lane }: { guard: string; lane: string | undefined }) {
  return { guard, ...(lane !== undefined && lane !== EVERY_LANE && { lane }) }
}

async function operate(
  { inside }: ActSurroundings,
  request: OperatorRequest & Who,
): Promise<string> {
  const guards = inside.guards()
  const names = guards.map(({ name }) => name)
  const name = meant('guard', request.guard, names, request)
  const known = guards.find((each) => each.name === name)
  if (known === undefined) throw denied(404, request, `unknown guard '${request.guard}'`)
  const resolved = { ...request, guard: known.name, ...laneMeant(known, request) }
  const operator = operatorOf(inside.store, [[known.name, known.parts.options]])
  const { message } = await operator.perform(resolved)
  return message
}

/**
 * A lane that only other pods have used is not known here, so a shortened name cannot be resolved.
 */
function laneMeant(guard: SharedGuard, request: OperatorRequest & Who): { lane?: string } {
  const lane = 'lane' in request ? request.lane : undefined
  if (lane === undefined) return {}
  const breakers = guard.snapshot().breakers.map((each) => each.lane)
  const known = [...guard.parts.lanes.names(), ...breakers]
  const name = meant('lane', lane, known, request)
  if (name !== undefined) return { lane: name }
  if (isShortened(lane)) throw denied(404, request, `no lane known here is shown as '${lane}'`)
  return { lane }
}

/** Finds a name by its full or shortened form; undefined if there is none. */
function meant(what: string, name: string, known: Iterable<string>, who: Who): string | undefined {
  const names = namesShownAs(name, known)
  if (names.length <= 1) return names[0]
  throw denied(409, who, `${names.length} ${what}s are shown as '${name}': use the whole name`)
}

async function drain(
  { pod }: { pod: string },
  { inside }: ActSurroundings,
  by: Who,
): Promise<string> {
  return recordAct({ name: pod, action: 'drain', ...by }, async () => {
    const command = packCommand(
      { what: 'drain', by: `${by.by}, ${by.from}` },
      createPodId('ask', inside.random),
    )
    if (!(await inside.membership.sendCommand(pod, command)))
      throw new ActProblem(404, `there is no pod '${pod}'`)
    return 'requested a drain'
  })
}

async function replay(
  { queue: name, id }: { queue: string; id: string | undefined },
  { inside }: ActSurroundings,
  by: Who,
): Promise<string> {
  const queues = inside.queues()
  const names = queues.map((each) => each.name)
  const whole = meant('queue', name, names, by)
  const known = queues.find((each) => each.name === whole)
  if (known === undefined) throw denied(404, by, `there is no queue '${name}'`)
  return recordAct({ name: known.name, action: 'replay', ...by }, async () => {
    const count = await known.queue.replay(id)
    if (count === 0 && id !== undefined)
      throw new ActProblem(404, `there is no dead letter '${id}'`)
    return `put back ${count} dead ${count === 1 ? 'letter' : 'letters'}`
  })
}

async function switchDemo(
  { load, broken }: { load: boolean | undefined; broken: boolean | undefined },
  { demo }: ActSurroundings,
  by: Who,
): Promise<string> {
  if (demo === undefined) throw denied(404, by, 'this gateway has no demo')
  return recordAct({ name: 'demo', action: 'demo', ...by }, async () => {
    await demo.set({ ...(load !== undefined && { load }), ...(broken !== undefined && { broken }) })
    const { load: loads, broken: breaks } = demo.state()
    return `load is ${loads ? 'on' : 'off'}, the vendor ${breaks ? 'fails' : 'works'}`
  })
}

/** Reports an operator that was denied, and why. */
export function reportDenied(who: Who, { problem }: { problem: string }): void {
  emitActed({ name: '', action: 'act', ...who }, 'refused', problem)
}

function denied(status: 404 | 409, who: Who, problem: string): ActProblem {
  reportDenied(who, { problem: shown(problem) })
  return new ActProblem(status, problem)
}

function emitActed(
  about: { name: string; action: string } & Who,
  result: 'done' | 'refused' | 'failed',
  message: string,
): void {
  const nothing = { lane: undefined, unit: undefined, limit: undefined, forMs: undefined }
  emit({ type: 'operator.acted', ...about, ...nothing, result, message })
}

/** One audit entry per action, also for failures. */
async function recordAct(
  about: { name: string; action: string } & Who,
  act: () => Promise<string>,
): Promise<string> {
  try {
    const message = await act()
    emitActed(about, 'done', message)
    return message
  } catch (error) {
    const known = error instanceof ActProblem
    emitActed(
      about,
      known ? 'refused' : 'failed',
      known ? error.message : 'the store did not answer',
    )
    throw error
  }
}

/** The HTTP response to an error. */
export function statusOf(error: unknown): { status: number; problem: string } {
  if (error instanceof ActProblem) return { status: error.status, problem: error.message }
  if (error instanceof OptionsError) return { status: 400, problem: error.message }
  if (error instanceof SpillwayError) return { status: error.status, problem: error.message }
  // All other errors come from the store.
  return { status: 503, problem: 'the store did not answer' }
}
