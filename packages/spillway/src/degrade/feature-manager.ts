/**
 * Switches features off under load, the least important first, and whenever a dependency fails.
 * They come back after a while, so that they do not flap. The state is evaluated periodically, so
 * checking a feature is one map look-up.
 */

import { callSafely, emit, listening } from '../core/events.js'
import { OptionsError, oneOf, text, validate } from '../core/options/checks.js'
import { suggest } from '../core/options/suggest.js'
import type { Clock, Timer } from '../core/time/clock.js'
import { Steady } from '../local/pod-metrics/steady.js'
import { type DependencyStatus, STATUSES } from './dependencies.js'
import {
  type DegradationLevel,
  type FeatureManagerOptions,
  type FeatureOptions,
  IMPORTANCES,
  type Importance,
  LEVEL_OF,
  readFeature,
  readOptions,
} from './feature-options.js'
import { createPodLoad, type PodLoad } from './pod-load.js'

/** State of one feature. */
export interface FeatureState {
  /** Name of the feature. */
  name: string
  /** Importance of the feature. */
  importance: Importance
  /** Whether it is on. */
  on: boolean
  /** Why it is off: `load`, or the dependency's name and status. */
  because: string | undefined
}

/**
 * Switches features off and on by load and by the state of their downstreams. Created by
 * `createFeatureManager()`.
 */
export interface FeatureManager {
  /** Registers another feature. */
  register(name: string, options: FeatureOptions): void
  /** Whether a feature is on. */
  isOn(name: string): boolean
  /** Runs the feature if it is on, and the alternative if it is off or fails. */
  run<T>(
    name: string,
    fn: () => T | PromiseLike<T>,
    otherwise: () => T | PromiseLike<T>,
  ): Promise<T>
  /** Sets the status of a dependency. It counts at once, and until it is set again. */
  setStatus(dependency: string, status: DependencyStatus): void
  /** How far this pod has degraded. */
  readonly level: DegradationLevel
  /** State and counts at this moment. */
  snapshot(): {
    /** How far this pod has degraded. */
    level: DegradationLevel
    /** Load of this pod. */
    load: PodLoad & {
      /** Pressure on this pod; 1 is the most it can take. */ pressure: number
    }
    /** State of each feature. */
    features: FeatureState[]
    /** State of each downstream. */
    dependencies: Record<string, DependencyStatus>
  }
  /** Calls `listener` on every change of the level, until the returned function is called. */
  onLevel(listener: (level: DegradationLevel, before: DegradationLevel) => unknown): () => void
  /** Evaluates the state now. It also does so every `everyMs`. */
  evaluate(): void
  /** Stops its timer. */
  close(): void
}

/**
 * Creates a feature manager, which switches features off under load, the least important first.
 *
 * @example
 * const features = createFeatureManager({ features: { related: { importance: 'low' } } })
 * if (features.isOn('related')) page.related = await loadRelated()
 */
export function createFeatureManager(options: FeatureManagerOptions = {}): FeatureManager {
  return new PodFeatures(validate('featureManager', options, readOptions))
}

interface Feature {
  readonly name: string
  readonly options: ReturnType<typeof readFeature>
  /** On while a dependency is not healthy, and for a while after that. */
  readonly failing: Steady
  on: boolean
  because: string | undefined
}

class PodFeatures implements FeatureManager {
  level: DegradationLevel = 'full'
  readonly #options: ReturnType<typeof readOptions>
  readonly #clock: Clock
  readonly #features = new Map<string, Feature>()
  readonly #dependencies = new Map<string, () => DependencyStatus>()
  /** The thresholds, from the least important features to the most. */
  readonly #thresholds: readonly {
    threshold: number
    switchesOff: readonly Importance[]
    steady: Steady
  }[]
  readonly #readLoad: () => PodLoad
  readonly #listeners = new Set<(level: DegradationLevel, before: DegradationLevel) => unknown>()
  #load: PodLoad & { pressure: number } = { cpu: 0, memory: 0, pressure: 0 }
  #timer: Timer | undefined
  #closed = false

  constructor(options: ReturnType<typeof readOptions>) {
    this.#options = options
    const { clock, thresholds, features, dependencies, load } = options
    this.#clock = clock
    this.#readLoad = load ?? createPodLoad(() => clock.now())
    this.#thresholds = [
      { threshold: thresholds.low, switchesOff: ['low', 'optional'], steady: this.#steady() },
      { threshold: thresholds.normal, switchesOff: ['normal'], steady: this.#steady() },
      { threshold: thresholds.high, switchesOff: ['high'], steady: this.#steady() },
    ]
    for (const [name, readStatus] of Object.entries(dependencies))
      this.#dependencies.set(name, readStatus)
    for (const [name, feature] of Object.entries(features)) this.#add(name, feature)
    this.#keepEvaluating()
  }

  register(name: string, options: FeatureOptions): void {
    validate('feature', name, text())
    const checked = validate(`feature(${name})`, options, readFeature)
    if (this.#features.has(name)) {
      throw new OptionsError([{ path: `feature(${name})`, message: 'is registered already' }])
    }
    this.#add(name, checked)
    this.evaluate()
  }

  isOn(name: string): boolean {
    return this.#find(name).on
  }

  async run<T>(
    name: string,
    fn: () => T | PromiseLike<T>,
    otherwise: () => T | PromiseLike<T>,
  ): Promise<T> {
    if (!this.#find(name).on) return otherwise()
    try {
      return await fn()
    } catch (error) {
      if (listening()) emit({ type: 'callback.failed', name, callback: 'feature', error })
      return otherwise()
    }
  }

  setStatus(dependency: string, status: DependencyStatus): void {
    this.#checkDependency(dependency, 'setStatus')
    const checked = validate('status', status, oneOf(...STATUSES))
    this.#dependencies.set(dependency, () => checked)
    this.evaluate()
  }

  snapshot() {
    const features = Array.from(this.#features.values(), ({ name, options, on, because }) => ({
      name,
      importance: options.importance,
      on,
      because,
    }))
    const names = [...this.#dependencies.keys()]
    const dependencies: Record<string, DependencyStatus> = Object.fromEntries(
      names.map((name) => [name, this.#statusOf(name)]),
    )
    return { level: this.level, load: { ...this.#load }, features, dependencies }
  }

  onLevel(listener: (level: DegradationLevel, before: DegradationLevel) => unknown): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  evaluate(): void {
    const { pressure, margin } = this.#options
    const load = callSafely('features', 'load', this.#readLoad, { cpu: 0, memory: 0 })
    this.#load = {
      ...load,
      pressure: callSafely('features', 'pressure', () => pressure?.() ?? 0, 0),
    }
    const most = Math.max(this.#load.cpu, this.#load.memory, this.#load.pressure)
    const nowMs = this.#clock.now()
    const switchedOff = new Set<Importance>()
    for (const { threshold, switchesOff, steady } of this.#thresholds) {
      const holds = most > (steady.on ? threshold - margin : threshold)
      if (steady.see(holds, nowMs))
        for (const importance of switchesOff) switchedOff.add(importance)
    }
    for (const feature of this.#features.values()) this.#decide(feature, switchedOff, nowMs)
    this.#setLevel()
  }

  /** The name of `evaluate` before the first release. Not part of the interface. */
  look(): never {
    throw new TypeError('features.look() was renamed: use features.evaluate()')
  }

  close(): void {
    this.#closed = true
    this.#timer?.cancel()
  }

  #decide(feature: Feature, switchedOff: ReadonlySet<Importance>, nowMs: number): void {
    const { options, failing } = feature
    const failed = options.dependsOn
      .map((name) => ({ name, status: this.#statusOf(name) }))
      .find(({ status }) => status === 'unavailable' || status === options.offWhen)
    const off = failing.see(failed !== undefined, nowMs)
    // After recovery it stays off for a while for the same reason.
    const why = failed === undefined ? feature.because : `${failed.name} is ${failed.status}`
    const because = off ? why : switchedOff.has(options.importance) ? 'load' : undefined
    const on = because === undefined
    const changed = on !== feature.on
    feature.on = on
    const before = feature.because
    feature.because = because
    if (!changed || !listening()) return
    const type = on ? 'feature.on' : 'feature.off'
    emit({ type, name: feature.name, because: because ?? before ?? '' })
  }

  #setLevel(): void {
    const before = this.level
    const off = IMPORTANCES.find((importance) =>
      [...this.#features.values()].some(
        ({ on, options }) => !on && options.importance === importance,
      ),
    )
    this.level = off === undefined ? 'full' : LEVEL_OF[off]
    if (this.level === before) return
    for (const listener of this.#listeners) {
      callSafely('features', 'onLevel', () => listener(this.level, before), undefined)
    }
  }

  #statusOf(dependency: string): DependencyStatus {
    const readStatus = this.#dependencies.get(dependency)
    // A dependency whose function throws counts as unavailable.
    return callSafely('features', dependency, () => readStatus?.() ?? 'healthy', 'unavailable')
  }

  #add(name: string, options: ReturnType<typeof readFeature>): void {
    for (const each of options.dependsOn) this.#checkDependency(each, `feature(${name}).dependsOn`)
    const feature = { name, options, failing: this.#steady(), on: true, because: undefined }
    this.#features.set(name, feature)
  }

  #checkDependency(name: string, path: string): void {
    if (this.#dependencies.has(name)) return
    throw new OptionsError([
      { path, message: unknown('dependency', name, this.#dependencies.keys()) },
    ])
  }

  #find(name: string): Feature {
    const feature = this.#features.get(name)
    if (feature !== undefined) return feature
    throw new OptionsError([
      { path: 'feature', message: unknown('feature', name, this.#features.keys()) },
    ])
  }

  /** Switches on at once, and off after a while. */
  #steady(): Steady {
    return new Steady({ riseMs: 0, fallMs: this.#options.holdMs })
  }

  #keepEvaluating(): void {
    if (this.#closed) return
    this.evaluate()
    this.#timer = this.#clock.schedule(this.#options.everyMs, () => this.#keepEvaluating())
    this.#timer.unref()
  }
}

function unknown(kind: string, name: string, known: Iterable<string>): string {
  const names = [...known]
  const close = suggest(name, names)
  const hint =
    close === undefined ? `known: ${names.join(', ') || 'none'}` : `did you mean '${close}'?`
  return `unknown ${kind} '${name}'; ${hint}`
}
