/** The changes of a guard that a search tries, one at a time, the smallest first. */
import type { GuardOptions } from 'spillway'
import { duration, type OptionProblem } from 'spillway/options'
import type { CheckedScenario } from '../scenario/read-scenario.js'

/** A change of one option of a guard. */
export interface GuardChange {
  /** The option, such as `retry.budget`. */
  path: string
  /** Its present value; undefined: not set. */
  from: unknown
  /** Its new value. */
  to: unknown
  /** 1 is the smallest change of this option. */
  step: number
  /** The line to merge into the guard's configuration. */
  yaml: string
  /** The guard with this change. */
  guard: GuardOptions
}

type Section = keyof GuardOptions

interface Row {
  readonly section: Section
  readonly field: string
  /** New values, the smallest change first. None: the option does not apply to this guard. */
  values(current: CheckedScenario): readonly unknown[]
}

/** Budgets to try. 0.2 is the default. */
const BUDGETS = [0.5, 0.2, 0.1, 0.05, 0]
const THROTTLE_K = [2, 1.5, 1.1]
const BREAKER = { failureRate: 0.5, windowMs: 5_000, minimumCalls: 20, openMs: 2_000 }
const LOWER_RATES = [0.5, 0.3, 0.2]
const STEPS = 3
const readDuration = duration({ min: 0 })

/** In the order in which changes of equal size are preferred. */
const ROWS: readonly Row[] = [
  {
    section: 'retry',
    field: 'budget',
    values: ({ guard: { retry } }) =>
      retry === undefined ? [] : BUDGETS.filter((each) => each < (retry.budget ?? 0.2)),
  },
  {
    section: 'retry',
    field: 'attempts',
    values({ guard: { retry } }) {
      if (retry === undefined) return []
      const attempts = retry.attempts ?? 3
      return Array.from({ length: attempts - 1 }, (_, index) => attempts - 1 - index)
    },
  },
  {
    section: 'queue',
    field: 'timeoutMs',
    values: ({ guard: { queue } }) => parts(queue && msOf(queue.timeoutMs ?? 5_000), 1),
  },
  {
    section: 'queue',
    field: 'size',
    values: ({ guard: { queue } }) => parts(queue?.size, 1),
  },
  {
    section: 'shed',
    field: 'maxQueue',
    values: ({ guard: { shed, queue } }) => parts(shed?.maxQueue ?? queue?.size, 1),
  },
  {
    section: 'concurrency',
    field: 'limit',
    values({ guard: { concurrency }, vendor: { capacity }, pods }) {
      if (concurrency?.limit !== undefined) return parts(concurrency.limit, 1)
      if (capacity === undefined) return []
      return [2, 1.5, 1].map((factor) => Math.max(1, Math.floor((capacity * factor) / pods)))
    },
  },
  {
    section: 'timeout',
    field: 'callMs',
    values: ({ guard: { timeout } }) => multiples(timeout && msOf(timeout.callMs)),
  },
  {
    section: 'timeout',
    field: 'callMs',
    values: ({ guard: { timeout } }) => parts(timeout && msOf(timeout.callMs), 10),
  },
  {
    section: 'throttle',
    field: 'k',
    values: ({ guard: { throttle } }) =>
      THROTTLE_K.filter((each) => each < (throttle?.k ?? Number.POSITIVE_INFINITY)),
  },
  {
    section: 'breaker',
    field: 'failureRate',
    values: ({ guard: { breaker } }) =>
      LOWER_RATES.filter((each) => each < (breaker?.failureRate ?? Number.POSITIVE_INFINITY)),
  },
]

/** Half, a quarter, an eighth. */
function parts(now: number | undefined, least: number): number[] {
  if (now === undefined) return []
  const all = Array.from({ length: STEPS }, (_, index) => Math.floor(now / 2 ** (index + 1)))
  return all.filter((each) => each >= least)
}

function multiples(now: number | undefined): number[] {
  return now === undefined ? [] : [now * 2, now * 4, now * 8]
}

/** Undefined for an option that is not set. */
function msOf(value: unknown): number | undefined {
  const problems: OptionProblem[] = []
  const ms = readDuration(value, '', problems)
  return problems.length === 0 ? ms : undefined
}

/** All changes of a guard: those of step 1 first, in the order of the list. */
export function changesOf(scenario: CheckedScenario, guard: GuardOptions): GuardChange[] {
  const changes = ROWS.flatMap((row) =>
    row
      .values(scenario)
      .slice(0, STEPS)
      .map((to, index) => changeOf(row, to, index + 1, scenario, guard)),
  )
  return changes.sort((one, other) => one.step - other.step)
}

function changeOf(
  { section, field }: Row,
  to: unknown,
  step: number,
  scenario: CheckedScenario,
  guard: GuardOptions,
): GuardChange {
  const present = guard[section] as Record<string, unknown> | undefined
  const checked = scenario.guard[section] as Record<string, unknown> | undefined
  // A breaker that is added needs its other options as well.
  const added =
    section === 'breaker' && present === undefined ? { ...BREAKER, [field]: to } : { [field]: to }
  return {
    path: `${section}.${field}`,
    from: checked?.[field],
    to,
    step,
    yaml: `${section}: { ${Object.entries(added)
      .map(([name, value]) => `${name}: ${value}`)
      .join(', ')} }`,
    guard: { ...guard, [section]: { ...present, ...added } },
  }
}
