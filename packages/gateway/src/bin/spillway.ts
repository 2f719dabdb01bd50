#!/usr/bin/env node
/** The command `spillway`. */
import { readFileSync } from 'node:fs'
import { OptionsError } from 'spillway'
import { type Command, HELP, readCommand } from '../cli/command-line.js'
import { UsageError } from '../cli/usage.js'
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
  else if (command.kind === 'scenarios' || command.kind === 'simulate') await simulate(command)
  else if (command.kind === 'plan') {
    const { runPlan } = await import('../cli/run-plan.js')
    if (!(await runPlan(command))) process.exitCode = 1
  } else if (command.kind === 'queue') {
    const { runQueue } = await import('../cli/run-queue.js')
    if (!(await runQueue(command))) process.exitCode = 1
  } else {
    // Not before it is needed: --help should not wait for it.
    const { runGateway } = await import('../cli/run-gateway.js')
    await runGateway(command)
  }
}

async function simulate(
  command: Extract<Command, { kind: 'scenarios' | 'simulate' }>,
): Promise<void> {
  const { listScenarios, runSimulate } = await import('../cli/run-simulate.js')
  if (command.kind === 'scenarios') process.stdout.write(listScenarios())
  else if (!(await runSimulate(command))) process.exitCode = 1
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
  if (error instanceof ConfigError || error instanceof OptionsError) return error.message
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE') return `${message}\nAnother port: --port N, --admin-port N`
  return code === 'EACCES' || (code as unknown) === 'QUEUE_STORE' ? message : undefined
}
