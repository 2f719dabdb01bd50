#!/usr/bin/env node
/** The command `spillway`. */
import { CannotError } from '../cli/cannot-error.js'
import { EXIT } from '../cli/command-row.js'
import { COMMANDS } from '../cli/commands.js'
import { explain } from '../cli/explain.js'
import { runCommand } from '../cli/run-command.js'
import { UsageError } from '../cli/usage.js'

try {
  process.exitCode = await runCommand(process.argv.slice(2), COMMANDS)
} catch (error) {
  const message = explain(error)
  if (message === undefined) throw error
  process.stderr.write(`${message}\n`)
  process.exitCode = exitCodeOf(error)
}

function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return EXIT.usage
  if (error instanceof CannotError) return error.exitCode
  const { code } = error as { code?: unknown }
  return code === 'STORE_UNAVAILABLE' ? EXIT.unavailable : EXIT.failure
}
