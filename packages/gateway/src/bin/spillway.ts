#!/usr/bin/env node
/** The command `spillway`. */
import { readFileSync } from 'node:fs'
import { type Command, HELP, readCommand, UsageError } from '../cli/command-line.js'
import { ConfigError } from '../config/error.js'

try {
  await run(readCommand(process.argv.slice(2)))
} catch (error) {
  const message = explain(error)
  if (message === undefined) throw error
  process.stderr.write(`${message}\n`)
  process.exitCode = error instanceof UsageError ? 2 : 1
}

async function run(command: Command): Promise<void> {
  if (command.kind === 'help') process.stdout.write(HELP[command.of])
  else if (command.kind === 'version') process.stdout.write(`${version()}\n`)
  else {
    // Not before it is needed: --help should not wait for it.
    const { runGateway } = await import('../cli/run-gateway.js')
    await runGateway(command)
  }
}

function version(): string {
  const { version } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  ) as { version: string }
  return version
}

/** What a person can do something about is told without a stack. */
function explain(error: unknown): string | undefined {
  if (error instanceof UsageError) return `${error.message}\nspillway --help explains.`
  if (error instanceof ConfigError) return error.message
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE') return `${message}\nAnother port: --port N, --admin-port N`
  return code === 'EACCES' ? message : undefined
}
