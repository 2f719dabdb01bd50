/**
 * Runs a bench in a process of its own, so that it does not matter which ones ran before. What V8
 * learnt from one bench can slow the next by a third, and some switches of Node (the promise hooks
 * behind AsyncLocalStorage) are thrown for the rest of a process's life.
 */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { BenchError } from './bench-error.js'
import type { Measured } from './measure.js'

const MAIN = fileURLToPath(new URL('main.js', import.meta.url))

/** Ends with the signal's reason, when the process has ended, once the signal is aborted. */
export function runApart(suite: string, bench: string, signal: AbortSignal): Promise<Measured> {
  return new Promise((resolve, reject) => {
    const child = fork(MAIN, [suite, '--only', bench, '--json'], {
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    })
    // Not SIGINT: the terminal has sent that one already, and the second one would be a kill.
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
