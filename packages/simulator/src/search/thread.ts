/** A thread of a search: runs trials, one at a time. */
import { parentPort } from 'node:worker_threads'
import { runTrial, type Trial, type TrialOutcome } from './trial.js'

export interface ToThread {
  readonly id: number
  readonly trial: Trial
}

export type FromThread =
  | { readonly id: number; readonly outcome: TrialOutcome }
  | { readonly id: number; readonly problem: unknown }

parentPort?.on('message', ({ id, trial }: ToThread) => {
  runTrial(trial).then(
    (outcome) => parentPort?.postMessage({ id, outcome } satisfies FromThread),
    (problem) => parentPort?.postMessage({ id, problem } satisfies FromThread),
  )
})
