/** What the user asked for, or a UsageError that says what to type instead. */
import { parseArgs } from 'node:util'
import { closestWord } from './closest-word.js'
import type { Bench, Suite } from './measure.js'

export interface RunCommand {
  kind: 'run'
  suite: string
  benches: readonly Bench[]
  json: boolean
}

export type Command = { kind: 'help' } | { kind: 'list' } | RunCommand

export class UsageError extends Error {
  readonly code = 'USAGE'
}

const OPTIONS = {
  json: { type: 'boolean' },
  only: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

export function readCommand(args: string[], suites: readonly Suite[]): Command {
  refuseUnknownOptions(args)
  const { values, positionals } = parse(args)
  if (values.help) return { kind: 'help' }
  const [suiteName, ...more] = positionals
  if (suiteName === undefined) {
    if (args.length > 0) throw new UsageError(`which suite? There are: ${namesOf(suites)}`)
    return { kind: 'list' }
  }
  if (more.length > 0) throw new UsageError(`one suite at a time, got: ${positionals.join(' ')}`)
  const { benches } = find('suite', suiteName, suites)
  const chosen = values.only === undefined ? benches : [find('bench', values.only, benches)]
  return { kind: 'run', suite: suiteName, benches: chosen, json: values.json ?? false }
}

export function helpText(suites: readonly Suite[]): string {
  return `Measures Spillway, mostly against comparable libraries.

  npm run bench                              lists the suites
  npm run bench -- SUITE                     runs one and prints a table
  npm run bench -- SUITE --json              prints a JSON object a line instead
  npm run bench -- SUITE --only BENCH        runs a single bench
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

/** Node refuses them, too, but suggests to pass them as file names. */
function refuseUnknownOptions(args: string[]): void {
  const { tokens } = parseArgs({ args, options: OPTIONS, strict: false, tokens: true })
  for (const token of tokens) {
    if (token.kind !== 'option' || token.name in OPTIONS) continue
    throw unknown('option', token.rawName, ['--json', '--only', '--help'])
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
