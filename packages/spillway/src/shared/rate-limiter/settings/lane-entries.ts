/** The options `lanes` and `pools`: limits of single lanes, and limits that several lanes share. */
import {
  arrayOf,
  type OptionProblem,
  object,
  optional,
  recordOf,
  text,
  together,
} from '../../../core/options/checks.js'
import { suggest } from '../../../core/options/suggest.js'
import { NamePattern } from '../../lanes/name-pattern.js'
import { readLimits, type SharedLimit } from '../options.js'

/** Limits of the lanes with matching names. At least one of `limits` and `pool` is required. */
export interface LaneEntry {
  /** Name of the lanes; `*` stands for any text. Range: 1 to 200 characters. */
  match: string
  /** Limits of each of these lanes, in place of the guard's own limits per lane: 1 to 16. Default: none. */
  limits?: readonly Omit<SharedLimit, 'per'>[]
  /** The pool that these lanes share: a name in `pools`. Default: none. */
  pool?: string
}

/** Limits that several lanes share. */
export interface LimitPool {
  /** Every call of a lane in the pool is charged to each of them: 1 to 16. */
  limits: readonly Omit<SharedLimit, 'per'>[]
}

const LONGEST_NAME = 200
const MOST_ENTRIES = 1_000

const readName = together(text(), (name, path, problems) => {
  if (name.length <= LONGEST_NAME) return
  problems.push({ path, message: `must be 1 to ${LONGEST_NAME} characters long` })
})

/** Limits that span all lanes belong to the guard. */
const readOwnLimits = together(readLimits, (limits, path, problems) => {
  for (const [index, { per }] of limits.entries()) {
    if (per !== 'vendor') continue
    const message = "must not be 'vendor' here; put limits of all lanes into the guard's `limits`"
    problems.push({ path: `${path}[${index}].per`, message })
  }
})

const readEntry = together(
  object({ match: readName, limits: optional(readOwnLimits), pool: optional(text()) }),
  ({ limits, pool }, path, problems) => {
    if (limits !== undefined || pool !== undefined) return
    problems.push({ path, message: 'must have `limits`, a `pool`, or both' })
  },
)

/** An entry that no lane can reach is a mistake in the order. */
export const readLaneEntries = together(arrayOf(readEntry), (entries, path, problems) => {
  if (entries.length > MOST_ENTRIES) {
    return void problems.push({ path, message: `must be at most ${MOST_ENTRIES} entries` })
  }
  const patterns = entries.map(({ match }) => new NamePattern(match))
  for (const [index, pattern] of patterns.entries()) {
    const earlier = patterns.slice(0, index).findIndex((each) => each.covers(pattern))
    if (earlier === -1) continue
    const { text: first } = patterns[earlier] as NamePattern
    const message = `is never reached: '${first}' (entry ${earlier + 1}) comes first and matches the same names; move this entry up`
    problems.push({ path: `${path}[${index}].match`, message })
  }
})

export const readPools = together(
  recordOf(object({ limits: readOwnLimits })),
  (pools, path, problems) => {
    for (const name of Object.keys(pools)) readName(name, `${path}.${name}`, problems)
  },
)

export type CheckedEntries = ReturnType<typeof readLaneEntries>
export type CheckedPools = ReturnType<typeof readPools>

/** Every entry names a pool that exists, and every pool has lanes. */
export function checkPools(
  {
    lanes = [],
    pools = {},
  }: { lanes?: CheckedEntries | undefined; pools?: CheckedPools | undefined },
  path: string,
  problems: OptionProblem[],
): void {
  const names = Object.keys(pools)
  for (const [index, { pool }] of lanes.entries()) {
    if (pool === undefined || Object.hasOwn(pools, pool)) continue
    const close = suggest(pool, names)
    const known = names.length === 0 ? 'there are no `pools`' : `known: ${names.join(', ')}`
    const hint = close === undefined ? known : `did you mean '${close}'?`
    problems.push({ path: `${path}.lanes[${index}].pool`, message: `no pool '${pool}'; ${hint}` })
  }
  for (const name of names) {
    if (lanes.some(({ pool }) => pool === name)) continue
    const message = 'no entry of `lanes` uses this pool'
    problems.push({ path: `${path}.pools.${name}`, message })
  }
}
