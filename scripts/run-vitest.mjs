// Runs Vitest and returns its exit code and the counts of scripts/test-tally.mjs.

import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { exitCodeOf, root, tools } from './run-command.mjs'

const TALLY = join(root, 'scripts/test-tally.mjs')

/**
 * Resolves with `{ count, exitCode }`. The exit code is non-zero for a run without tests, too, and
 * there is no count when a signal ended the run. `node` is the program of Node that runs Vitest.
 */
export function runVitest(
  args,
  { output = 'inherit', node = process.execPath, env = process.env } = {},
) {
  return new Promise((resolve) => {
    // If Vitest dies before it can report, that is one failure.
    let count = { passed: 0, failed: 1, skipped: 0 }
    const vitest = spawn(
      node,
      [tools.vitest, 'run', '--reporter=default', `--reporter=${TALLY}`, ...args],
      { cwd: root, env, stdio: ['inherit', output, output, 'ipc'] },
    )
    vitest.on('message', (message) => {
      count = message
    })
    let interruptedBy
    const forward = (signal) => {
      interruptedBy = signal
      vitest.kill(signal)
    }
    const signals = ['SIGINT', 'SIGTERM']
    for (const signal of signals) process.on(signal, forward)
    vitest.on('close', (code) => {
      for (const signal of signals) process.off(signal, forward)
      if (interruptedBy) return resolve({ count: undefined, exitCode: exitCodeOf(interruptedBy) })
      const failed = code !== 0 || count.failed > 0 || count.passed === 0
      return resolve({ count, exitCode: failed ? (code ?? 1) || 1 : 0 })
    })
  })
}
