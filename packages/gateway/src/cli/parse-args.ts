/** Reads options and arguments for all commands. */
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { duration, type OptionProblem, suggest } from 'spillway/options'

export class UsageError extends Error {
  readonly code = 'USAGE'
  /** The command that was called, for a hint at its help. */
  command: string | undefined
}

type Options = NonNullable<ParseArgsConfig['options']>
type Parsed<O extends Options> = ReturnType<
  typeof parseArgs<{ args: string[]; options: O; allowPositionals: true }>
>

/** Returns options and arguments. Throws a UsageError with a suggestion. */
export function parseArguments<O extends Options>(args: readonly string[], options: O): Parsed<O> {
  refuseUnknown(args, options)
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    throw new UsageError((error as Error).message.split('\n')[0])
  }
}

/** Node refuses them as well, but suggests passing them as arguments. */
function refuseUnknown(args: readonly string[], options: Options): void {
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true })
  for (const token of tokens) {
    if (token.kind !== 'option' || token.name in options) continue
    const known = Object.keys(options).map((name) => `--${name}`)
    throw new UsageError(`unknown option ${token.rawName}${didYouMean(token.rawName, known)}`)
  }
}

export function didYouMean(word: string, known: readonly string[]): string {
  const close = suggest(word, known)
  return close === undefined ? `; expected one of: ${known.join(', ')}` : `; did you mean ${close}?`
}

/** Returns the action if it is one of `actions`. */
export function readAction<T extends string>(
  command: string,
  action: string | undefined,
  actions: readonly T[],
): T {
  if (action === undefined) {
    throw new UsageError(`${command}: missing action; expected one of: ${actions.join(', ')}`)
  }
  const found = actions.find((each) => each === action)
  if (found !== undefined) return found
  throw new UsageError(`${command}: unknown action "${action}"${didYouMean(action, actions)}`)
}

export function noArguments(positionals: readonly string[]): void {
  if (positionals.length === 0) return
  throw new UsageError(`unexpected argument "${positionals.join(' ')}"`)
}

export function readPort(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const port = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (port <= 65_535) return port
  throw new UsageError(`${option}: must be a port, 0 to 65535, got "${text}"`)
}

/** Returns milliseconds. The text needs a unit, because a bare 10 is ambiguous. */
export function readDuration(option: string, text: string): number {
  const problems: OptionProblem[] = []
  const ms = duration({ min: 1 })(text, option, problems)
  if (problems.length === 0) return ms
  throw new UsageError(
    `${option}: must be a duration with its unit, such as 30s or 10m, got "${text}"`,
  )
}

export function readWhole(
  option: string,
  text: string | undefined,
  { min, max = Number.MAX_SAFE_INTEGER }: { min: number; max?: number },
): number | undefined {
  if (text === undefined) return undefined
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  throw new UsageError(`${option}: must be a whole number of at least ${min}, got "${text}"`)
}
