/** Parses the command line, runs a command and returns its exit code. */
import { readFileSync } from 'node:fs'
import type { CommandRow } from './command.js'
import { EXIT } from './command.js'
import { helpOf, overview } from './help.js'
import { didYouMean, UsageError } from './parse-args.js'

export async function runCommand(
  args: readonly string[],
  commands: readonly CommandRow[],
): Promise<number> {
  const [name, ...rest] = args
  if (name === undefined || name === '--help' || name === '-h') return print(overview(commands))
  if (name === '--version' || name === '-v') return print(`${version()}\n`)
  if (name === 'help') return runCommand([...rest, '--help'], commands)
  const command = commands.find((each) => each.name === name)
  if (command === undefined) {
    const names = commands.map((each) => each.name)
    if (name.startsWith('-')) {
      const known = ['--help', '--version']
      throw new UsageError(`unknown option ${name}${didYouMean(name, known)}`)
    }
    const renamed = Object.hasOwn(RENAMED, name) ? `; use ${RENAMED[name]}` : undefined
    throw new UsageError(`unknown command "${name}"${renamed ?? didYouMean(name, names)}`)
  }
  if (wantsHelp(rest)) return print(helpOf(command))
  try {
    return await command.run(rest)
  } catch (error) {
    if (error instanceof UsageError) error.command = name
    throw error
  }
}

/** Names of commands before the first release. */
const RENAMED: Readonly<Record<string, string>> = { queue: 'job-queue' }

/** At any position before `--`. */
function wantsHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  const words = end === -1 ? args : args.slice(0, end)
  return words.includes('--help') || words.includes('-h')
}

function print(text: string): number {
  process.stdout.write(text)
  return EXIT.ok
}

function version(): string {
  const { version } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  ) as { version: string }
  return version
}
