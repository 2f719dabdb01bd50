/**
 * Validates options once, at construction. A check reads one value and either returns it in its
 * final form or notes a problem with the option's path. All problems are reported together.
 */
import { DURATION_PATTERN, type Duration, parseDuration } from '../time/duration.js'
import {
  described,
  describedAs,
  markOptional,
  objectSchema,
  schemaOf,
  withDefault,
} from './schema.js'
import { suggest } from './suggest.js'

/** One mistake in options. */
export interface OptionProblem {
  /** Path of the option, such as `bulkhead.queue.size`. */
  path: string
  /** What was expected and what was found. */
  message: string
}

/** Thrown for invalid options. Names every mistake with its path. */
export class OptionsError extends TypeError {
  /** Always `INVALID_OPTIONS`. */
  readonly code = 'INVALID_OPTIONS'
  /** Every mistake, with its path. */
  readonly problems: readonly OptionProblem[]

  constructor(problems: readonly OptionProblem[]) {
    super(problems.map(({ path, message }) => `${path}: ${message}`).join('\n'))
    this.name = 'OptionsError'
    this.problems = problems
  }
}

/** Reads the value at `path`. The result counts only if no problem was noted. */
export type Check<T> = (value: unknown, path: string, problems: OptionProblem[]) => T

/** Checks by field. */
export type Fields = Readonly<Record<string, Check<unknown>>>
/** The result of checks by field. */
export type Checked<F extends Fields> = { [K in keyof F]: ReturnType<F[K]> }

/** Reads `input`, or throws an `OptionsError` that names every mistake in it. */
export function validate<T>(path: string, input: unknown, check: Check<T>): T {
  const problems: OptionProblem[] = []
  const value = check(input, path, problems)
  if (problems.length > 0) throw new OptionsError(problems)
  return value
}

/** Smallest and largest value of a number. */
export interface Range {
  /** Smallest value, in the unit of the option. Range: any number. */
  min: number
  /** Largest value, in the unit of the option. Range: any number. Default: no limit. */
  max?: number
}

/** A whole number within a range. */
export function integer(range: Range): Check<number> {
  const expected = describeRange('integer', range)
  const check = expecting(
    (value): value is number => Number.isInteger(value) && within(value as number, range),
    expected,
  )
  return described(check, { type: 'integer', ...bounds(range) })
}

/** A number within a range. */
export function number(range: Range): Check<number> {
  const expected = describeRange('number', range)
  const check = expecting(
    (value): value is number => typeof value === 'number' && within(value, range),
    expected,
  )
  return described(check, { type: 'number', ...bounds(range) })
}

/** A number above zero. */
export function positive({ max }: { max?: number } = {}): Check<number> {
  const most = max ?? Number.MAX_VALUE
  const check = expecting(
    (value): value is number => typeof value === 'number' && value > 0 && value <= most,
    max === undefined ? 'a positive number' : `a number above 0 and at most ${max}`,
  )
  return described(check, {
    type: 'number',
    exclusiveMinimum: 0,
    ...(max !== undefined && { maximum: max }),
  })
}

/** Milliseconds as a number, or text such as `'5s'`. */
export function duration(range: Range): Check<number> {
  const { min, max } = range
  const least = min > -Number.MAX_VALUE ? ` of at least ${min} ms` : ''
  const span = max === undefined ? least : ` from ${min} to ${max} ms`
  const expected = `a duration${span}, such as 250 or '5s'`
  const check: Check<number> = (value, path, problems) => {
    const ms = parseDuration(value)
    if (ms !== undefined && within(ms, range)) return ms
    return complain(value, path, problems, expected)
  }
  return described(check, {
    anyOf: [
      { type: 'number', ...bounds(range) },
      { type: 'string', pattern: DURATION_PATTERN },
    ],
  })
}

/** A text that is not empty. */
export function text(): Check<string> {
  const check = expecting(
    (value): value is string => typeof value === 'string' && value !== '',
    'a non-empty string',
  )
  return described(check, { type: 'string', minLength: 1 })
}

/** A boolean. */
export function bool(): Check<boolean> {
  const check = expecting((value): value is boolean => typeof value === 'boolean', 'true or false')
  return described(check, { type: 'boolean' })
}

/** A function. */
// biome-ignore lint/suspicious/noExplicitAny: any function is a function
export function func<F extends (...args: any[]) => unknown>(): Check<F> {
  const check = expecting((value): value is F => typeof value === 'function', 'a function')
  return described(check, undefined)
}

/** An object with these methods, such as a clock. */
export function having<T>(what: string, ...methods: (keyof T & string)[]): Check<T> {
  const expected = `${what} with the methods ${methods.join(', ')}`
  const check = expecting(
    (value): value is T =>
      typeof value === 'object' &&
      value !== null &&
      methods.every((method) => typeof (value as Record<string, unknown>)[method] === 'function'),
    expected,
  )
  return described(check, undefined)
}

/** One of these words. */
export function oneOf<const T extends string>(...words: T[]): Check<T> {
  const expected = `one of ${words.map((word) => `'${word}'`).join(', ')}`
  const check: Check<T> = (value, path, problems) => {
    if ((words as unknown[]).includes(value)) return value as T
    const close = typeof value === 'string' ? suggest(value, words) : undefined
    return complain(value, path, problems, expected, close)
  }
  return described(check, { enum: words })
}

/** A check that suggests the new value for values from before the first release. */
export function renamed<T>(check: Check<T>, words: Readonly<Record<string, string>>): Check<T> {
  const hinting: Check<T> = (value, path, problems) => {
    const found: OptionProblem[] = []
    const checked = check(value, path, found)
    const isOld = typeof value === 'string' && Object.hasOwn(words, value)
    for (const problem of found) {
      const message = problem.message.replace(/; did you mean .*$/s, '')
      problems.push(isOld ? { path, message: `${message}; use '${words[value]}'` } : problem)
    }
    return checked
  }
  return describedAs(hinting, check)
}

/** A value that one of two checks accepts. */
export function either<A, B>(first: Check<A>, second: Check<B>): Check<A | B> {
  const check: Check<A | B> = (value, path, problems) => {
    const complaints: OptionProblem[] = []
    const one = first(value, path, complaints)
    const [firstComplaint] = complaints.splice(0)
    if (firstComplaint === undefined) return one
    const other = second(value, path, complaints)
    const [secondComplaint] = complaints
    if (secondComplaint === undefined) return other
    // Joins "must be X, got V" and "must be Y, got V" into one sentence.
    const expected = firstComplaint.message.replace(/, got .*$/s, '')
    const rest = secondComplaint.message.replace(/^must be /, '')
    problems.push({ path, message: `${expected}, or ${rest}` })
    return other
  }
  return described(check, () => {
    const forms = [schemaOf(first), schemaOf(second)].filter((each) => each !== undefined)
    return forms.length > 1 ? { anyOf: forms } : forms[0]
  })
}

/** A value that may be absent, with an optional default. */
export function optional<T>(check: Check<T>): Check<T | undefined>
export function optional<T>(check: Check<T>, fallback: T): Check<T>
export function optional<T>(check: Check<T>, fallback?: T): Check<T | undefined> {
  const lenient: Check<T | undefined> = (value, path, problems) =>
    value === undefined ? fallback : check(value, path, problems)
  return markOptional(described(lenient, () => withDefault(schemaOf(check), fallback)))
}

/** An array whose items pass a check. */
export function arrayOf<T>(check: Check<T>): Check<T[]> {
  const each: Check<T[]> = (value, path, problems) => {
    if (!Array.isArray(value)) return complain(value, path, problems, 'an array')
    return value.map((item, index) => check(item, `${path}[${index}]`, problems))
  }
  return described(each, () => ({ type: 'array', items: schemaOf(check) }))
}

/** An object with any names, whose values pass a check. */
export function recordOf<T>(check: Check<T>): Check<Record<string, T>> {
  const each: Check<Record<string, T>> = (value, path, problems) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      problems.push({ path, message: 'must be an object, by name' })
      return {}
    }
    const entries = Object.entries(value).map(([name, item]) => [
      name,
      check(item, `${path}.${name}`, problems),
    ])
    // Assignment would set the prototype if `__proto__` is a key.
    return Object.fromEntries(entries)
  }
  return described(each, () => ({ type: 'object', additionalProperties: schemaOf(check) }))
}

/**
 * An object with these fields and no others.
 * @param renamed Names from before the first release, with their new names.
 */
export function object<F extends Fields>(
  fields: F,
  renamed: Readonly<Record<string, keyof F & string>> = {},
): Check<Checked<F>> {
  const known = Object.keys(fields)
  const readAll: Check<Checked<F>> = (value, path, problems) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      return complain(value, path, problems, 'an object')
    }
    for (const key of Object.keys(value)) {
      if (Object.hasOwn(fields, key)) continue
      problems.push(unknownProblem(path, key, known, renamed))
    }
    const checked = Object.entries(fields).map(([key, check]) => {
      return [key, check((value as Record<string, unknown>)[key], `${path}.${key}`, problems)]
    })
    // Assignment would set the prototype if `__proto__` is a key.
    return Object.fromEntries(checked) as Checked<F>
  }
  return described(readAll, () => objectSchema(fields))
}

/** An error for an option that does not exist, where options are not read by `object`. */
export function unknownOption(path: string, key: string, known: readonly string[]): OptionsError {
  return new OptionsError([unknownProblem(path, key, known)])
}

function unknownProblem(
  path: string,
  key: string,
  known: readonly string[],
  renamed: Readonly<Record<string, string>> = {},
): OptionProblem {
  if (Object.hasOwn(renamed, key)) {
    return { path: `${path}.${key}`, message: `was renamed; use '${renamed[key]}'` }
  }
  const close = suggest(key, known)
  const hint = close === undefined ? `known: ${known.join(', ')}` : `did you mean '${close}'?`
  return { path: `${path}.${key}`, message: `unknown option; ${hint}` }
}

/** A check, followed by a second one of how the parts of its result fit together. */
export function together<T>(
  check: Check<T>,
  compare: (checked: T, path: string, problems: OptionProblem[]) => void,
): Check<T> {
  const both: Check<T> = (value, path, problems) => {
    const before = problems.length
    const checked = check(value, path, problems)
    if (problems.length === before) compare(checked, path, problems)
    return checked
  }
  return describedAs(both, check)
}

function expecting<T>(test: (value: unknown) => value is T, expected: string): Check<T> {
  return (value, path, problems) =>
    test(value) ? value : complain(value, path, problems, expected)
}

function complain(
  value: unknown,
  path: string,
  problems: OptionProblem[],
  expected: string,
  close?: string,
): never {
  const hint = close === undefined ? '' : `; did you mean '${close}'?`
  const found = value === undefined ? 'nothing' : show(value)
  problems.push({ path, message: `must be ${expected}, got ${found}${hint}` })
  // The value is never used: `validate` throws once all problems are known.
  return undefined as never
}

function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'function') return 'a function'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object' && value !== null) return 'an object'
  return String(value)
}

function within(value: number, { min, max = Number.MAX_VALUE }: Range): boolean {
  return value >= min && value <= max
}

function bounds({ min, max }: Range): { minimum?: number; maximum?: number } {
  return {
    ...(min > -Number.MAX_VALUE && { minimum: min }),
    ...(max !== undefined && { maximum: max }),
  }
}

function describeRange(kind: 'integer' | 'number', { min, max }: Range): string {
  const article = kind === 'integer' ? 'an' : 'a'
  if (max !== undefined) return `${article} ${kind} from ${min} to ${max}`
  if (kind === 'integer' && min === 1) return 'a positive integer'
  return `${article} ${kind} of at least ${min}`
}

export type { Duration }
