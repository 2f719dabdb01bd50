/** Runs trials of a search in several threads. Each trial has its own random numbers, so their number does not matter. */
import { Worker } from 'node:worker_threads'
import type { FromThread, ToThread } from './thread.js'
import type { Trial, TrialOutcome } from './trial.js'

/** Threads that run the trials of a search. Created by `startTrialThreads()`. */
export interface TrialThreads {
  /** For `SearchOptions.runTrials`. */
  runTrials(trials: readonly Trial[]): Promise<TrialOutcome[]>
  /** Ends all threads. Trials that run or wait are rejected. */
  close(): Promise<void>
}

interface Waiting {
  readonly message: ToThread
  resolve(outcome: TrialOutcome): void
  reject(error: unknown): void
}

/** A larger young generation than the default: a trial creates much garbage that dies at once. */
const YOUNG_MB = 64

/** Starts threads for `searchStability()`. */
export function startTrialThreads(count: number): TrialThreads {
  const waiting: Waiting[] = []
  const running = new Map<Worker, Waiting>()
  const idle: Worker[] = []
  let next = 0

  function dispatch(): void {
    while (idle.length > 0 && waiting.length > 0) {
      const [worker, trial] = [idle.pop()!, waiting.shift()!]
      running.set(worker, trial)
      worker.postMessage(trial.message)
    }
  }

  function end(worker: Worker): Waiting | undefined {
    const trial = running.get(worker)
    running.delete(worker)
    return trial
  }

  const workers = Array.from({ length: count }, () => {
    const worker = new Worker(new URL('./thread.js', import.meta.url), {
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    })
    worker.on('message', (message: FromThread) => {
      const trial = end(worker)
      if ('outcome' in message) trial?.resolve(message.outcome)
      else trial?.reject(message.problem)
      idle.push(worker)
      dispatch()
    })
    worker.on('error', (error) => end(worker)?.reject(error))
    idle.push(worker)
    return worker
  })

  return {
    runTrials(trials) {
      const outcomes = trials.map(
        (trial) =>
          new Promise<TrialOutcome>((resolve, reject) => {
            waiting.push({ message: { id: next++, trial }, resolve, reject })
          }),
      )
      dispatch()
      return Promise.all(outcomes)
    },
    async close() {
      const ended = new Error('the search was stopped')
      for (const { reject } of [...waiting.splice(0), ...running.values()]) reject(ended)
      running.clear()
      await Promise.all(workers.map((worker) => worker.terminate()))
    },
  }
}
