/** Adds suggestions to problems of checks that only state what they expect. */
import type { ConfigProblem } from '../config-error.js'
import { schemaIndex } from './schema-index.js'

/** Adds a hint to each mistake that has one. `root`: the parsed document. */
export function withHints(mistakes: readonly ConfigProblem[], root: unknown): ConfigProblem[] {
  const tooFarLeft = optionsTooFarLeft(mistakes, root)
  if (tooFarLeft !== undefined) return [tooFarLeft]
  return mistakes.map((mistake) => {
    const place = placeHint(mistake)
    if (place !== undefined) return { ...mistake, message: `unknown option; ${place}` }
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
  if (/^\.vendors\..*\.keys?\b/.test(path) && message.endsWith(' is not set')) {
    return 'set it, or write url: mock in place of key to try without one'
  }
  if (message.startsWith('must be an array, got') && Object(value) === value) {
    return 'write it in [ ], or after a dash'
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

/** Options as far left as the name of their vendor. Only the first of many mistakes is reported. */
function optionsTooFarLeft(
  mistakes: readonly ConfigProblem[],
  root: unknown,
): ConfigProblem | undefined {
  const vendors = valueAt(root, '.vendors')
  if (!isVendor(vendors) || typeof (vendors as { protocol: unknown }).protocol !== 'string') {
    return undefined
  }
  const empty = mistakes.find(({ message }) => message === 'must be an object, got null')
  if (empty === undefined || !/^\.vendors\.[^.[]+$/.test(empty.path)) return undefined
  return { ...empty, message: `${empty.message}; its options have to be indented further` }
}

const MOST_PLACES = 3

/** Where the schema has an option of this name: in an object around it, or elsewhere. */
function placeHint({ path, message }: ConfigProblem): string | undefined {
  if (!message.startsWith('unknown option; known:')) return undefined
  const name = path.slice(path.lastIndexOf('.') + 1)
  const places = schemaIndex().places.get(name) ?? []
  const around = places.filter((place) => place === '' || path.startsWith(`.${place}.`))
  const likely = around.length > 0 ? around.slice(-1) : places
  if (likely.length === 0 || likely.length > MOST_PLACES) return undefined
  return `${name} belongs to ${likely.map((place) => place || 'the top level').join(' or ')}`
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
