// Runs a built program inside this process. A child process would be in the same terminal group and get every Ctrl-C
// twice: from the terminal, and forwarded by this process.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { exitCodeOf, root } from './run-command.mjs'

// npm forwards signals that its children already got from the terminal. A signal within this time is such a
// duplicate, not a second Ctrl-C.
const ECHO_MS = 500

/**
 * @param {object} options
 * @param {string} options.project folder of the program, such as `examples`
 * @param {string} options.name the program's file name without extension
 * @param {string[]} options.args
 * @param {number} [options.interruptedExitCode] exit code when a signal ends the program
 */
export async function runBuilt({ project, name, args, interruptedExitCode }) {
  const file = join(root, project, 'dist', `${name}.js`)
  if (!existsSync(file)) {
    process.stderr.write(`nothing to run: ${project}/src/${name}.ts does not exist.\n`)
    process.exit(1)
  }
  for (const signal of ['SIGINT', 'SIGTERM']) endOn(signal, interruptedExitCode)
  process.argv = [process.argv[0], file, ...args]
  await import(pathToFileURL(file).href)
}

/** A program that handles the signal ends itself. Otherwise this process exits without a message. */
function endOn(signal, exitCode = exitCodeOf(signal)) {
  let firstAtMs
  process.on(signal, () => {
    const nowMs = performance.now()
    if (firstAtMs !== undefined && nowMs - firstAtMs < ECHO_MS) return
    const programIsEnding = firstAtMs === undefined && process.listenerCount(signal) > 1
    firstAtMs ??= nowMs
    if (!programIsEnding) process.exit(exitCode)
  })
}
