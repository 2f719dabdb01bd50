/**
 * One instance per dependency, by name, made when first asked for. So that code far apart that
 * calls the same dependency shares its slots, and an operator sees all of them in one place.
 */
import { isDeepStrictEqual } from 'node:util'
import { OptionsError } from '../core/options.js'

interface Member {
  snapshot(): unknown
  close(): Promise<void>
}

export interface Registry<T extends Member, O> {
  /**
   * The instance for this dependency. Options may be left out once it exists; other options than it
   * was made with are a mistake.
   */
  get(name: string, options?: O): T
  snapshot(): ReturnType<T['snapshot']>[]
  /** Closes all; resolves when all have ended. */
  close(): Promise<void>
}

export function createRegistry<T extends Member, O>(
  create: (name: string, options: O | undefined) => T,
): Registry<T, O> {
  const members = new Map<string, { member: T; options: O | undefined }>()

  function get(name: string, options?: O): T {
    const known = members.get(name)
    if (known === undefined) {
      const member = create(name, options)
      members.set(name, { member, options })
      return member
    }
    if (options !== undefined && !isDeepStrictEqual(options, known.options)) {
      throw new OptionsError([{ path: name, message: 'exists already, with other options' }])
    }
    return known.member
  }

  return {
    get,
    snapshot: () =>
      Array.from(members.values(), ({ member }) => member.snapshot() as ReturnType<T['snapshot']>),
    close: async () => {
      await Promise.all(Array.from(members.values(), ({ member }) => member.close()))
    },
  }
}
