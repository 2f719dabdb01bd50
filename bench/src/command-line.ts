/** Reads the command line; throws a UsageError with a hint if it is invalid. */
import { parseArgs } from 'node:util'
import { closestWord } from './closest-word.js'
import type { Bench, Suite } from './measure.js'

export interface RunCommand {
  kind: 'run'
  suites: readonly Suite[]
  json: boolean
}

/** Compares with the baseline, or records it. */
export type BaselineCommand =
  | { kind: 'compare'; suites: readonly Suite[] }
  | { kind: 'record'; suites: readonly Suite[]; runs: number }

export type Command = { kind: 'help' } | { kind: 'list' } | RunCommand | BaselineCommand

export class UsageError extends Error {
  readonly code = 'USAGE'
}

const OPTIONS = {
  json: { type: 'boolean' },
  only: { type: 'string' },
  compare: { type: 'boolean' },
  'record-baseline': { type: 'boolean' },
  runs: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

export function readCommand(args: string[], suites: readonly Suite[]): Command {
  refuseUnknownOptions(args)
  const { values, positionals } = parse(args)
  if (values.help) return { kind: 'help' }
  if (args.length === 0) return { kind: 'list' }
  if (values.compare && values['record-baseline'])
    throw new UsageError('--compare and --record-baseline exclude each other')
  const isBaseline = values.compare === true || values['record-baseline'] === true
  const chosen = choose(positionals, values.only, suites, isBaseline)
  if (values['record-baseline'])
    return { kind: 'record', suites: chosen, runs: runsOf(values.runs) }
  if (values.runs !== undefined) throw new UsageError('--runs needs --record-baseline')
  if (values.compare) return { kind: 'compare', suites: chosen }
  return { kind: 'run', suites: chosen, json: values.json ?? false }
}

/** The named suite with its benches, or with the one that is named. Without a name all of them, if that is allowed. */
function choose(
  names: readonly string[],
  only: string | undefined,
  suites: readonly Suite[],
  mayBeAll: boolean,
): readonly Suite[] {
  const [name, ...more] = names
  if (more.length > 0) throw new UsageError(`one suite at a time, got: ${names.join(' ')}`)
  if (name === undefined) {
    if (mayBeAll && only === undefined) return suites
    throw new UsageError(`which suite? There are: ${namesOf(suites)}`)
  }
  const suite = find('suite', name, suites)
  return [only === undefined ? suite : { ...suite, benches: [find('bench', only, suite.benches)] }]
}

function runsOf(text = '5'): number {
  const runs = Number(text)
  if (Number.isInteger(runs) && runs >= 1 && runs <= 100) return runs
  throw new UsageError(`--runs takes a whole number from 1 to 100, got "${text}"`)
}

export function helpText(suites: readonly Suite[]): string {
  return `Measures Spillway, mostly against comparable libraries.

  npm run bench                              lists the suites
  npm run bench -- SUITE                     runs one and prints a table
  npm run bench -- SUITE --json              prints a JSON object a line instead
  npm run bench -- SUITE --only BENCH        runs a single bench
  npm run bench -- [SUITE] --compare         compares with bench/baseline.json; exit code 1 if a figure got worse
  npm run bench -- [SUITE] --record-baseline --runs 5
                                             runs five times and writes bench/baseline.json
  npm run bench -- --help                    prints this

Ratios say how many times as fast as the peer Spillway is. Missing a target is reported and is not
an error: figures depend on the machine, and on what else it does.

${listText(suites)}`
}

export function listText(suites: readonly Suite[]): string {
  const width = Math.max(...suites.flatMap(({ benches }) => benches.map(({ name }) => name.length)))
  const line = ({ name, what }: Bench) => `  ${name.padEnd(width)}  ${what}\n`
  return suites
    .map(({ name, what, benches }) => `${name}: ${what}\n${benches.map(line).join('')}`)
    .join('\n')
}

/** Unknown options are rejected here, because the hint of Node is to pass them as file names. */
function refuseUnknownOptions(args: string[]): void {
  const { tokens } = parseArgs({ args, options: OPTIONS, strict: false, tokens: true })
  for (const token of tokens) {
    if (token.kind !== 'option' || token.name in OPTIONS) continue
    throw unknown(
      'option',
      token.rawName,
      [...Object.keys(OPTIONS)].map((name) => `--${name}`),
    )
  }
}

function parse(args: string[]) {
  try {
    return parseArgs({ args, options: OPTIONS, allowPositionals: true })
  } catch (error) {
    throw new UsageError((error as Error).message.split('\n')[0])
  }
}

function find<T extends { name: string }>(kind: string, name: string, among: readonly T[]): T {
  const found = among.find((one) => one.name === name)
  if (found !== undefined) return found
  throw unknown(
    kind,
    name,
    among.map((one) => one.name),
  )
}

function unknown(kind: string, word: string, known: readonly string[]): UsageError {
  const meant = closestWord(word, known)
  const hint = meant === undefined ? `There are: ${known.join(', ')}` : `Did you mean "${meant}"?`
  return new UsageError(`unknown ${kind} "${word}". ${hint}`)
}

function namesOf(all: readonly { name: string }[]): string {
  return all.map(({ name }) => name).join(', ')
}
