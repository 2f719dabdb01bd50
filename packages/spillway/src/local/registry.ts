/**
 * One instance per dependency, by name, made when first asked for. So that code far apart that
 * calls the same dependency shares its slots, and an operator sees all of them in one place.
 */
import { isDeepStrictEqual } from 'node:util'
import { type OptionProblem, OptionsError } from '../core/options/checks.js'

interface Member {
  snapshot(): unknown
  close(): Promise<void>
}

export interface Registry<T extends Member, O extends object> {
  /**
   * The instance for this dependency. Options not given are the defaults; once it exists they may
   * be left out, and others than it was made with are a mistake.
   */
  get(name: string, options?: Partial<O>): T
  snapshot(): ReturnType<T['snapshot']>[]
  /** Closes all, and whatever is asked for from now on; resolves when all have ended. */
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
    .map(([key]) => ({ path: `${name}.${key}`, message: 'exists already, with another value' }))
}
