/**
 * Searches for metastable failures: triggers after whose end the fleet does not recover by itself. Then tries changes
 * of the guard, one at a time, for the smallest one with which the fleet recovers from every trigger of the range.
 */
import type { GuardOptions } from 'spillway'
import { OptionsError } from 'spillway/options'
import { type CheckedScenario, readScenario } from '../scenario/read-scenario.js'
import type { Scenario } from '../scenario/scenario.js'
import { changesOf, type GuardChange } from './changes.js'
import { runTrial, type Trial, type TrialOutcome, type TriggerKind } from './trial.js'

/** Options of `searchStability()`. */
export interface SearchOptions {
  /** Options of the guard, in place of the scenario's. Default: those of the scenario. */
  guard?: GuardOptions
  /** Number of pods, in place of the scenario's. Range: integers from 1. Default: that of the scenario. */
  pods?: number
  /** Seed of the random numbers. Range: any integer. Default: 1. */
  seed?: number
  /** Kind of the trigger. Default: `slow`. */
  trigger?: TriggerKind
  /** Largest trigger: a factor, or a share for `fail`. Range: above 1; for `fail`, above 0 and up to 1. Default: 16, or 1 for `fail`. */
  maxSize?: number
  /** Longest trigger. Range: from 100 ms. Default: 10 seconds. */
  maxDurationMs?: number
  /** Time after the trigger in which the fleet must recover. Range: from 0 ms. Default: 10 seconds. */
  recoverMs?: number
  /** Runs trials, for example in threads. The order of the outcomes is that of the trials. Default: one after the other. */
  runTrials?: (trials: readonly Trial[]) => Promise<TrialOutcome[]>
  /** Called before each group of trials, with the number of trials so far and the purpose of the group. Default: none. */
  onProgress?: (done: number, what: string) => void
}

/** The boundary for one load and one duration of the trigger. */
export interface BoundaryCell {
  /** Requests, as a share of the scenario's. */
  load: number
  /** Duration of the trigger. */
  durationMs: number
  /** Smallest trigger from which the fleet does not recover; null: none in the range. */
  size: number | null
}

/** Result of a search. */
export interface StabilitySearch {
  /** Name of the scenario. */
  name: string
  /** Seed of the random numbers. */
  seed: number
  /** Kind of the trigger. */
  trigger: TriggerKind
  /** Largest trigger of the range. */
  maxSize: number
  /** Longest trigger of the range. */
  maxDurationMs: number
  /** Time in which the fleet must recover. */
  recoverMs: number
  /** Share of the requests that are served without a trigger. */
  servedBefore: number
  /** Whether the fleet recovers from every trigger of the range. */
  stable: boolean
  /** By load, largest first, and by duration. Lower loads are missing if the fleet recovers at a higher one. */
  boundary: BoundaryCell[]
  /**
   * Largest load, as a share of the scenario's, at which the fleet recovers from all triggers of `maxDurationMs`; null
   * if it recovers at the full load.
   */
  safeLoad: number | null
  /** Good answers a second before and after the trigger at the boundary; null if there is none. */
  example: { load: number; durationMs: number; size: number; before: number; after: number } | null
  /** Changes that remove the boundary, the recommended one first. */
  changes: GuardChange[]
  /** Number of simulated runs. */
  trials: number
}

const LOADS = [1, 0.75, 0.5]
const DURATION_PARTS = [0.2, 0.5, 1]
const SIZE_STEPS = 4
const BISECTIONS = 3
const LOAD_BISECTIONS = 3
const SMALLEST_LOAD = 0.1
/** The fleet has recovered when it serves this share of what it serves in the same run without a trigger. */
export const RECOVERED = 0.9
/** A change must not cost more than this share of the good answers without a trigger. */
const KEPT = 0.95
/** Promising changes of one step that are checked with every trigger of the range; more only until one passes. */
const USUALLY_CHECKED = 3

type Point = Pick<Trial, 'load' | 'durationMs'> & { readonly size: number }

/** A trial, compared with the same run without a trigger. */
interface Comparison {
  readonly recovers: boolean
  /** Good answers a second without a trigger, and after it. */
  readonly baseline: number
  readonly after: number
}

/**
 * Searches the triggers from which a fleet does not recover, and the smallest change that removes them. Deterministic
 * for a seed.
 *
 * @example
 * const found = await searchStability(SCENARIOS[0], { guard: { retry: { attempts: 4, budget: 1 } } })
 * console.log(renderSearch(found))
 */
export async function searchStability(
  written: Scenario,
  options: SearchOptions = {},
): Promise<StabilitySearch> {
  return new Search(written, options).run()
}

class Search {
  readonly #scenario: Scenario
  readonly #checked: CheckedScenario
  readonly #guard: GuardOptions
  readonly #base: Pick<Trial, 'scenario' | 'seed' | 'kind' | 'recoverMs'>
  readonly #runTrials: NonNullable<SearchOptions['runTrials']>
  readonly #onProgress: NonNullable<SearchOptions['onProgress']>
  readonly #maxDurationMs: number
  /** Sizes from small to large, the last one the largest. */
  readonly #sizes: readonly number[]
  readonly #baselineRuns = new Map<GuardOptions, Map<string, Promise<TrialOutcome>>>()
  #trials = 0

  constructor(written: Scenario, options: SearchOptions) {
    const { seed = 1, trigger = 'slow', maxDurationMs = 10_000, recoverMs = 10_000 } = options
    const { maxSize = trigger === 'fail' ? 1 : 16 } = options
    const { pods, guard = written.guard } = options
    this.#scenario = { ...written, ...(pods !== undefined && { pods }), guard }
    this.#checked = readScenario(this.#scenario, written.name)
    this.#guard = guard
    this.#base = { scenario: this.#scenario, seed, kind: trigger, recoverMs }
    this.#runTrials = options.runTrials ?? oneByOne
    this.#onProgress = options.onProgress ?? (() => {})
    this.#maxDurationMs = maxDurationMs
    const steps = Array.from({ length: SIZE_STEPS }, (_, index) => (index + 1) / SIZE_STEPS)
    this.#sizes = steps.map((part) => (trigger === 'fail' ? maxSize * part : maxSize ** part))
  }

  async run(): Promise<StabilitySearch> {
    await this.#refuseIdle()
    const boundary = await this.#findBoundary()
    const worst = smallestOf(boundary)
    const stable = worst === undefined
    const [example] = stable ? [] : await this.#try('boundary', this.#guard, [worst])
    const safeLoad = stable ? null : await this.#findSafeLoad(boundary)
    const changes = stable ? [] : await this.#findChanges(boundary)
    const { goodput, offered } = await this.#baseline(this.#guard, 1, this.#maxDurationMs)
    const { seed, kind, recoverMs } = this.#base
    return {
      name: this.#checked.name,
      seed,
      trigger: kind,
      maxSize: this.#sizes.at(-1)!,
      maxDurationMs: this.#maxDurationMs,
      recoverMs,
      servedBefore: Math.min(1, goodput / offered),
      stable,
      boundary,
      safeLoad,
      example: stable ? null : { ...worst, before: example!.baseline, after: example!.after },
      changes,
      trials: this.#trials,
    }
  }

  /** A fleet that serves nothing without a trigger would recover from every one. */
  async #refuseIdle(): Promise<void> {
    const baselines = this.#durations().map((ms) => this.#baseline(this.#guard, 1, ms))
    if ((await Promise.all(baselines)).every(({ goodput }) => goodput > 0)) return
    const message =
      'without a trigger the fleet serves nothing in the measured 4 s, so a recovery cannot be recognised; check the guard, the vendor and the clients'
    throw new OptionsError([{ path: this.#checked.name, message }])
  }

  async #findBoundary(): Promise<BoundaryCell[]> {
    const cells: BoundaryCell[] = []
    for (const load of LOADS) {
      const found = await this.#findCells(load)
      cells.push(...found)
      // With less load the fleet recovers more easily.
      if (found.every(({ size }) => size === null)) break
    }
    return cells
  }

  /**
   * Tries several sizes before it bisects: a large trigger may open the breaker and be harmless, while a smaller one
   * is not.
   */
  async #findCells(load: number): Promise<BoundaryCell[]> {
    const what = `load ${Math.round(load * 100)} %`
    const grid = this.#grid(load)
    const outcomes = await this.#try(what, this.#guard, grid)
    const cells = this.#durations().map((durationMs) => {
      const at = grid.findIndex(
        (point, index) => point.durationMs === durationMs && !outcomes[index]!.recovers,
      )
      if (at === -1) return { load, durationMs, low: 0, size: null }
      const { size } = grid[at]!
      return { load, durationMs, low: this.#sizes[this.#sizes.indexOf(size) - 1] ?? 0, size }
    })
    for (let round = 0; round < BISECTIONS; round++) {
      const open = cells.filter((cell) => cell.size !== null) as (Point & { low: number })[]
      const middle = open.map((cell) => ({ ...cell, size: this.#between(cell.low, cell.size) }))
      const results = await this.#try(what, this.#guard, middle)
      for (const [index, cell] of open.entries()) {
        if (results[index]!.recovers) cell.low = middle[index]!.size
        else (cell as { size: number }).size = middle[index]!.size
      }
    }
    return cells.map(({ low: _, ...cell }) => cell)
  }

  #between(low: number, high: number): number {
    if (this.#base.kind === 'fail') return (low + high) / 2
    return Math.sqrt(Math.max(1, low) * high)
  }

  #durations(): number[] {
    return DURATION_PARTS.map((part) => Math.round(this.#maxDurationMs * part))
  }

  #grid(load: number): Point[] {
    return this.#durations().flatMap((durationMs) =>
      this.#sizes.map((size) => ({ load, size, durationMs })),
    )
  }

  /** Bisects between the highest load of the table without a boundary, or a tenth of the load, and the next one. */
  async #findSafeLoad(boundary: readonly BoundaryCell[]): Promise<number> {
    const recovers = async (load: number) => {
      const points = this.#grid(load).filter(({ durationMs }) => durationMs === this.#maxDurationMs)
      const outcomes = await this.#try('safe load', this.#guard, points)
      return outcomes.every((each) => each.recovers)
    }
    let high = Math.min(...boundary.filter(({ size }) => size !== null).map(({ load }) => load))
    const stable = boundary.map(({ load }) => load).filter((load) => load < high)
    if (stable.length === 0 && !(await recovers(SMALLEST_LOAD))) return 0
    let low = stable[0] ?? SMALLEST_LOAD
    for (let round = 0; round < LOAD_BISECTIONS; round++) {
      const load = (low + high) / 2
      if (await recovers(load)) low = load
      else high = load
    }
    return low
  }

  /** Of the smallest step that has any: all changes that remove the boundary, the preferred one first. */
  async #findChanges(boundary: readonly BoundaryCell[]): Promise<GuardChange[]> {
    const harmful = boundary.filter(({ load, size }) => load === 1 && size !== null) as Point[]
    const longest = harmful.at(-1)!
    const baseline = await this.#baseline(this.#guard, 1, longest.durationMs)
    const changes = changesOf(this.#checked, this.#guard).filter((each) => this.#isValid(each))
    for (let step = 1; changes.some((each) => each.step >= step); step++) {
      const ofStep = changes.filter((each) => each.step === step)
      const tried = await Promise.all(
        ofStep.map(({ guard }) => this.#try(`changes of step ${step}`, guard, [longest])),
      )
      const promising = ofStep.filter((_, index) => {
        const [outcome] = tried[index]!
        return outcome!.recovers && outcome!.baseline >= KEPT * baseline.goodput
      })
      const removing: GuardChange[] = []
      for (const [index, change] of promising.entries()) {
        if (index >= USUALLY_CHECKED && removing.length > 0) break
        const points = [...harmful, ...this.#grid(1)]
        const all = await this.#try(`${change.path} ${change.to}`, change.guard, points)
        if (all.every(({ recovers }) => recovers)) removing.push(change)
      }
      if (removing.length > 0) return removing
    }
    return []
  }

  #isValid({ guard }: GuardChange): boolean {
    try {
      readScenario({ ...this.#scenario, guard })
      return true
    } catch {
      return false
    }
  }

  /** Runs triggers, and the runs without a trigger that are missing for the comparison. */
  async #try(what: string, guard: GuardOptions, points: readonly Point[]): Promise<Comparison[]> {
    this.#onProgress(this.#trials, what)
    const baselines = points.map(({ load, durationMs }) => this.#baseline(guard, load, durationMs))
    const trials = points.map((point) => ({ ...this.#base, guard, ...point }))
    const outcomes = await this.#runTrials(trials)
    this.#trials += trials.length
    const without = await Promise.all(baselines)
    return outcomes.map(({ goodput: after }, index) => {
      const { goodput, offered } = without[index]!
      // A fleet that serves none of its requests without a trigger has not recovered.
      const canRecover = goodput > 0 || offered === 0
      return { recovers: canRecover && after >= RECOVERED * goodput, baseline: goodput, after }
    })
  }

  /** The run without a trigger. Its requests arrive at the same moments. */
  #baseline(guard: GuardOptions, load: number, durationMs: number): Promise<TrialOutcome> {
    const known = this.#baselineRuns.get(guard) ?? new Map<string, Promise<TrialOutcome>>()
    this.#baselineRuns.set(guard, known)
    const key = `${load} ${durationMs}`
    let run = known.get(key)
    if (run === undefined) {
      const trial = { ...this.#base, guard, load, durationMs, size: undefined }
      run = this.#runTrials([trial]).then(([outcome]) => outcome!)
      // Avoids an unhandled rejection: the promise may be awaited after it has failed.
      run.catch(() => {})
      known.set(key, run)
      this.#trials++
    }
    return run
  }
}

/** The boundary at the full load: the smallest trigger, and of equal ones the shortest. */
function smallestOf(boundary: readonly BoundaryCell[]): Point | undefined {
  const harmful = boundary.filter(({ load, size }) => load === 1 && size !== null) as Point[]
  return [...harmful].sort(
    (one, other) => one.size - other.size || one.durationMs - other.durationMs,
  )[0]
}

async function oneByOne(trials: readonly Trial[]): Promise<TrialOutcome[]> {
  const outcomes: TrialOutcome[] = []
  for (const trial of trials) outcomes.push(await runTrial(trial))
  return outcomes
}
