/**
 * `spillway simulate search`: finds triggers from which a fleet does not recover, and the smallest change that helps.
 */
import { availableParallelism } from 'node:os'
import {
  renderSearch,
  type StabilitySearch,
  searchStability,
  startTrialThreads,
  type TriggerKind,
} from '@spillway/simulator'
import { findScenario, guardOf } from './read-scenario-file.js'

export interface SearchCommand {
  /** A built-in scenario, or a file. */
  readonly what: string
  readonly config: string | undefined
  readonly vendor: string | undefined
  readonly seed: number | undefined
  readonly pods: number | undefined
  readonly trigger: TriggerKind | undefined
  readonly maxSize: number | undefined
  readonly maxDurationMs: number | undefined
  readonly recoverMs: number | undefined
  readonly json: boolean
}

/** Resolves with the result, or with undefined after Ctrl-C. */
export async function runSearch(command: SearchCommand): Promise<StabilitySearch | undefined> {
  const { what, config, vendor, json, ...options } = command
  const scenario = findScenario(what)
  const guard = config === undefined ? scenario.guard : guardOf(config, vendor)
  const threads = startTrialThreads(availableParallelism())
  let stopped = false
  const stop = () => {
    stopped = true
    void threads.close()
  }
  process.once('SIGINT', stop)
  process.stderr.write(`searching ${scenario.name}; Ctrl-C stops\n`)
  try {
    const found = await searchStability(scenario, {
      ...defined(options),
      guard,
      runTrials: threads.runTrials,
      onProgress: showProgress,
    })
    hideProgress()
    process.stdout.write(json ? `${JSON.stringify(found)}\n` : renderSearch(found))
    return found
  } catch (error) {
    hideProgress()
    if (!stopped) throw error
    process.stderr.write('stopped\n')
    return undefined
  } finally {
    process.off('SIGINT', stop)
    await threads.close()
  }
}

function defined<T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  return Object.fromEntries(given) as { [K in keyof T]?: Exclude<T[K], undefined> }
}

function showProgress(trials: number, what: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r${trials} runs; ${what}\x1b[K`)
}

function hideProgress(): void {
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K')
}
