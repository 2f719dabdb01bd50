/** The program `spillway` from its arguments to its exit code. Expected errors are printed without a stack. */

import { EXIT } from './command.js'
import { CommandError } from './command-error.js'
import { COMMANDS } from './commands.js'
import { errorMessage } from './error-message.js'
import { UsageError } from './parse-args.js'
import { runCommand } from './run-command.js'

export async function runProgram(args: readonly string[]): Promise<number> {
  try {
    return await runCommand(args, COMMANDS)
  } catch (error) {
    const message = errorMessage(error)
    if (message === undefined) throw error
    process.stderr.write(`${message}\n`)
    return exitCodeOf(error)
  }
}

function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return EXIT.usage
  if (error instanceof CommandError) return error.exitCode
  const { code } = error as { code?: unknown }
  return code === 'STORE_UNAVAILABLE' ? EXIT.unavailable : EXIT.failure
}
