/** Adds hints at what the user probably meant, for checks that only state what they expect. */
import type { ConfigProblem } from '../config-error.js'

/** Adds a hint to each mistake that has one. `root`: the parsed document. */
export function withHints(mistakes: readonly ConfigProblem[], root: unknown): ConfigProblem[] {
  return mistakes.map((mistake) => {
    const hint = hintFor(mistake, valueAt(root, mistake.path), root)
    return hint === undefined ? mistake : { ...mistake, message: `${mistake.message}; ${hint}` }
  })
}

function hintFor(
  { path, message }: ConfigProblem,
  value: unknown,
  root: unknown,
): string | undefined {
  if (path === '.vendors' && message.includes('at least one vendor'))
    return vendorsHint(value, root)
  if (message.startsWith('unknown option') && /^\.[^.[]+$/.test(path) && isVendor(value)) {
    return 'is it a vendor? Then it has to be indented, under vendors'
  }
  if (typeof value !== 'string') return undefined
  if (message.startsWith('must be a duration')) return durationHint(value)
  if (/^must be (a|an) (positive )?(integer|number)/.test(message)) return numberHint(value)
  if (message.startsWith('must be true or false')) return booleanHint(value)
  if (message.startsWith('must be an object') && /^[\w-]+:\S/.test(value)) {
    return 'after a colon there has to be a space'
  }
  return undefined
}

function vendorsHint(value: unknown, root: unknown): string | undefined {
  if (Array.isArray(value))
    return 'write each under its name, without a dash: openai: { protocol: … }'
  const isEmpty = typeof root === 'object' && root !== null && Object.keys(root).length === 0
  return isEmpty ? 'spillway init writes a file to begin with' : undefined
}

function isVendor(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, 'protocol')
}

const UNIT_OF: readonly (readonly [words: RegExp, unit: string])[] = [
  [/^(ms|msec|msecs|milli|millis|milliseconds?)$/, 'ms'],
  [/^(s|sec|secs|seconds?)$/, 's'],
  [/^(m|min|mins|minutes?)$/, 'm'],
  [/^(h|hr|hrs|hours?)$/, 'h'],
  [/^(d|days?)$/, 'd'],
]

function durationHint(value: string): string | undefined {
  const [, amount, word = ''] = /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/i.exec(value) ?? []
  if (amount === undefined) return undefined
  if (word === '') return `did you mean ${amount}s, or ${amount}ms?`
  const unit = UNIT_OF.find(([words]) => words.test(word.toLowerCase()))?.[1]
  return unit === undefined ? undefined : `did you mean ${amount}${unit}?`
}

function numberHint(value: string): string | undefined {
  return /^\s*-?\d+(\.\d+)?\s*$/.test(value) ? 'write it without the quotes' : undefined
}

function booleanHint(value: string): string | undefined {
  if (/^(on|yes|y|true)$/i.test(value)) return 'did you mean true?'
  return /^(off|no|n|false)$/i.test(value) ? 'did you mean false?' : undefined
}

/** The value at a path such as `.vendors.openai.limits[0]`; names may contain dots. */
function valueAt(root: unknown, path: string): unknown {
  let [value, rest] = [root, path]
  while (rest !== '') {
    if (typeof value !== 'object' || value === null) return undefined
    const names = Array.isArray(value)
      ? [...value.keys()].map((index) => [`[${index}]`, index] as const)
      : Object.keys(value).map((name) => [`.${name}`, name] as const)
    const at = rest
    const [step, name] = names.findLast(([each]) => isStep(at, each)) ?? []
    if (step === undefined || name === undefined) return undefined
    value = (value as Record<string | number, unknown>)[name]
    rest = rest.slice(step.length)
  }
  return value
}

function isStep(path: string, step: string): boolean {
  return path.startsWith(step) && /^($|[.[])/.test(path.slice(step.length))
}
