/** The program `spillway` from its arguments to its exit code. Expected errors are printed without a stack. */
import { CannotError } from './cannot-error.js'
import { EXIT } from './command-row.js'
import { COMMANDS } from './commands.js'
import { explain } from './explain.js'
import { runCommand } from './run-command.js'
import { UsageError } from './usage.js'

export async function runProgram(args: readonly string[]): Promise<number> {
  try {
    return await runCommand(args, COMMANDS)
  } catch (error) {
    const message = explain(error)
    if (message === undefined) throw error
    process.stderr.write(`${message}\n`)
    return exitCodeOf(error)
  }
}

function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return EXIT.usage
  if (error instanceof CannotError) return error.exitCode
  const { code } = error as { code?: unknown }
  return code === 'STORE_UNAVAILABLE' ? EXIT.unavailable : EXIT.failure
}
