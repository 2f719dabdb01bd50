/**
 * Runs a bench in its own process, so that the order of the benches does not matter. Type feedback that V8 collects
 * in one bench can slow the next by a third, and some switches of Node (the promise hooks behind AsyncLocalStorage)
 * stay on for the life of a process.
 */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { BenchError } from './bench-error.js'
import type { Measured } from './measure.js'

const MAIN = fileURLToPath(new URL('main.js', import.meta.url))

/** Rejects with the signal's reason after an abort, once the process has exited. */
export function runApart(suite: string, bench: string, signal: AbortSignal): Promise<Measured> {
  return new Promise((resolve, reject) => {
    const child = fork(MAIN, [suite, '--only', bench, '--json'], {
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    })
    // Not SIGINT: the terminal has sent one already, and a second one kills the process.
    const end = () => child.kill('SIGTERM')
    signal.addEventListener('abort', end)
    let output = ''
    child.stdout?.setEncoding('utf8').on('data', (chunk) => {
      output += chunk
    })
    child.on('error', reject)
    child.on('close', (code) => {
      signal.removeEventListener('abort', end)
      if (signal.aborted) return reject(signal.reason)
      if (code !== 0) return reject(new BenchError(`${bench} failed with exit code ${code}`))
      const { bench: _, ...measured } = JSON.parse(output)
      resolve(measured)
    })
  })
}
