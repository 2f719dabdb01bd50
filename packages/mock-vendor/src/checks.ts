import { type Check, type OptionProblem, optional } from 'spillway/options'

function must(be: string, value: unknown, path: string, problems: OptionProblem[]): never {
  const found = value === undefined ? 'nothing' : JSON.stringify(value)
  problems.push({ path, message: `must be ${be}, got ${found}` })
  return undefined as never
}

export const flag: Check<boolean> = (value, path, problems) =>
  typeof value === 'boolean' ? value : must('true or false', value, path, problems)

/** Switches a knob off again. */
export const off: Check<false> = (value, path, problems) =>
  value === false ? value : must('false', value, path, problems)

/** `[from, to]`, in this order. */
export function rangeOf(check: Check<number>): Check<readonly [number, number]> {
  return (value, path, problems) => {
    if (!Array.isArray(value) || value.length !== 2) {
      return must('a pair such as [10, 50]', value, path, problems)
    }
    const before = problems.length
    const range = [
      check(value[0], `${path}[0]`, problems),
      check(value[1], `${path}[1]`, problems),
    ] as const
    if (problems.length === before && range[0] > range[1]) {
      return must('a pair with the smaller one first', value, path, problems)
    }
    return range
  }
}

/** An object with any keys and values of one kind. */
export function recordOf<T>(check: Check<T>): Check<ReadonlyMap<string, T>> {
  const entries: Check<ReadonlyMap<string, T>> = (value, path, problems) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      return must('an object', value, path, problems)
    }
    const named = Object.entries(value)
    return new Map(named.map(([name, item]) => [name, check(item, `${path}.${name}`, problems)]))
  }
  return optional(entries, new Map())
}
