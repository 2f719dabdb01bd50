/**
 * One instance per name, created when first needed. So distant parts of the code that call the same
 * downstream share its slots, and all instances can be listed in one place.
 */
import { isDeepStrictEqual } from 'node:util'
import { type OptionProblem, OptionsError } from '../core/options/checks.js'

interface Member {
  snapshot(): unknown
  close(): Promise<void>
}

/** Mechanisms by name, created when first used. */
export interface Registry<T extends Member, O extends object> {
  /**
   * The instance of this name. Options that are left out have the defaults. Once it exists, options
   * may be left out, and different ones are an error.
   */
  get(name: string, options?: Partial<O>): T
  /** State of each mechanism. */
  snapshot(): ReturnType<T['snapshot']>[]
  /** Closes all instances and those created later; resolves when all have ended. */
  close(): Promise<void>
}

export function createRegistry<T extends Member, O extends object>(
  defaults: O,
  create: (options: O & { name: string }) => T,
): Registry<T, O> {
  const members = new Map<string, { member: T; made: O }>()
  let closed = false

  function get(name: string, options: Partial<O> = {}): T {
    const known = members.get(name)
    if (known !== undefined) {
      const problems = contradictions(name, options, known.made)
      if (problems.length > 0) throw new OptionsError(problems)
      return known.member
    }
    const made = { ...defaults, ...options, name }
    const member = create(made)
    members.set(name, { member, made })
    if (closed) void member.close()
    return member
  }

  return {
    get,
    snapshot: () =>
      Array.from(members.values(), ({ member }) => member.snapshot() as ReturnType<T['snapshot']>),
    close: async () => {
      closed = true
      await Promise.all(Array.from(members.values(), ({ member }) => member.close()))
    },
  }
}

function contradictions(name: string, options: object, made: object): OptionProblem[] {
  return Object.entries(options)
    .filter(([key, value]) => !isDeepStrictEqual(value, (made as Record<string, unknown>)[key]))
    .map(([key]) => ({ path: `${name}.${key}`, message: 'was set to another value before' }))
}
