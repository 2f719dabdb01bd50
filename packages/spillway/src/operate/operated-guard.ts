/** A guard as an operator sees it: its shared state in the store, independent of the pods. */
import { OptionsError } from '../core/options/checks.js'
import {
  type FleetGuardReport,
  lanesOf,
  MOST_LANES,
  readGuard,
} from '../guard/fleet/fleet-report.js'
import { type CheckedGuard, checkGuard, type GuardOptions } from '../guard/options.js'
import { toSpec } from '../shared/circuit-breaker/options.js'
import { readStates } from '../shared/circuit-breaker/read-states.js'
import { keysGroup } from '../shared/key-quarantine/key-id.js'
import { dropNote, postNote } from '../shared/key-quarantine/key-notes.js'
import { KEY_SPEC } from '../shared/key-quarantine/policy.js'
import { readQuarantined } from '../shared/key-quarantine/read-keys.js'
import { ALL_LANES, DEFAULT_LANE } from '../shared/lanes/lane-names.js'
import { listMembers, type Member } from '../shared/membership.js'
import { figuresOf } from '../shared/rate-limiter/figures.js'
import { LimitSettings } from '../shared/rate-limiter/settings/limit-settings.js'
import type { BreakerSpec } from '../store/breaker-spec.js'
import type { BreakerCommand, Store } from '../store/port.js'

type Command = BreakerCommand['command']
/** Commands that can apply to all lanes at once, including lanes not used yet. */
type Holding = Extract<Command, { kind: 'isolate' | 'release' }>

/** The limits of a guard by id, as configured. */
export function configuredLimits(name: string, options: GuardOptions): ReadonlyMap<string, number> {
  return new LimitSettings(name, checkGuard(name, options)).configured
}

export class OperatedGuard {
  readonly name: string
  readonly #store: Store
  readonly #breaker: { spec: BreakerSpec; per: 'lane' | 'vendor' } | undefined
  readonly #limits: LimitSettings | undefined
  readonly #keys: readonly string[] | undefined

  /** `keys`: the names of its API keys, if they are known. */
  constructor(name: string, options: CheckedGuard, store: Store, keys?: readonly string[]) {
    const { breaker, limits } = options
    this.name = name
    this.#keys = keys
    this.#store = store
    this.#breaker = breaker && { spec: toSpec(breaker), per: breaker.per }
    // The same as in pods; otherwise the store would take it for a change of the limits.
    if (limits !== undefined) this.#limits = new LimitSettings(name, options)
  }

  /** Isolates or releases, and returns the lanes. */
  async hold(lane: string | undefined, command: Holding): Promise<readonly string[] | 'all'> {
    const lanes = lane === undefined ? [ALL_LANES] : [lane]
    // Single lanes may have been isolated.
    if (lane === undefined && command.kind === 'release') lanes.push(...(await this.#lanes()))
    await this.#command(lanes, command)
    return lane === undefined ? 'all' : lanes
  }

  /** Commands the breaker of each lane. Lanes that were never used have no state to change. */
  async command(lane: string | undefined, command: Command): Promise<readonly string[] | 'all'> {
    if (this.#breakerOf().per === 'vendor') {
      await this.#command([ALL_LANES], command)
      return 'all'
    }
    const lanes = lane === undefined ? await this.#lanes() : [lane]
    await this.#command(lanes, command)
    return lanes
  }

  async pause(lane: string | undefined, forUs: number): Promise<readonly string[] | 'all'> {
    const limits = this.#limitsOf()
    const pool = lane === undefined ? undefined : limits.of(lane).pool
    await this.#store.limits.pause({ guard: this.name, lane, pool, forUs })
    return lane === undefined ? 'all' : [lane]
  }

  async resume(lane: string | undefined): Promise<readonly string[] | 'all'> {
    if (lane !== undefined) return this.pause(lane, 0)
    await this.pause(undefined, 0)
    const lanes = await this.#lanes()
    await Promise.all(lanes.map((each) => this.pause(each, 0)))
    return 'all'
  }

  /** With no time: ends the override. Returns the name of the limit and its usual value. */
  async override(
    unit: string,
    limit: number,
    forUs: number,
  ): Promise<{ id: string; usual: number }> {
    const { id, limit: usual } = this.#limitsOf().checkLimit(unit).spec
    const override = { id, limit, forUs }
    // Without limits, because the operator's configuration may differ from that of the pods.
    const ref = { guard: this.name, lane: DEFAULT_LANE, limits: [], version: 0 }
    await this.#store.limits.change({ ...ref, override })
    return { id, usual }
  }

  /** No pod uses the API key of this name until the time is over or an operator releases it. */
  async quarantineKey(key: string, holder: string, forUs: number): Promise<void> {
    this.#checkKey(key)
    await this.#commandKey(key, { kind: 'isolate', holder, forUs })
    await postNote(this.#store, this.name, { id: key, reason: 'operator', forUs })
  }

  /** Ends every quarantine of the API key of this name. Returns whether there was any. */
  async releaseKey(key: string): Promise<boolean> {
    this.#checkKey(key)
    const known = (await readQuarantined(this.#store, this.name)).filter((each) => each.key === key)
    await this.#commandKey(key, { kind: 'release' })
    for (const { id } of known) {
      if (id !== key) await this.#commandKey(id, { kind: 'reset' })
      await dropNote(this.#store, this.name, id)
    }
    return known.length > 0
  }

  #checkKey(key: string): void {
    if (this.#keys === undefined || this.#keys.includes(key)) return
    const known = this.#keys.length === 0 ? 'it has no key' : `it has ${this.#keys.join(', ')}`
    const message = `'${this.name}' has no key '${key}'; ${known}`
    throw new OptionsError([{ path: 'key', message }])
  }

  async #commandKey(lane: string, command: Command): Promise<void> {
    const guard = keysGroup(this.name)
    await this.#store.breakers.command({ guard, lane, spec: KEY_SPEC, command })
  }

  /** Its state in the whole fleet, as stored. */
  report(members: readonly Member[]): Promise<FleetGuardReport> {
    const { name } = this
    const breaker = this.#breaker
    const { limits: store } = this.#store
    const limits = this.#limits
    return readGuard({
      name,
      keys: () => readQuarantined(this.#store, name),
      breaker: breaker && {
        readStates: (lanes) => readStates(this.#store.breakers, name, lanes, breaker),
      },
      limits:
        limits === undefined
          ? undefined
          : {
              async figures(lane) {
                return figuresOf(await store.figures(limits.ref(lane)))
              },
            },
      lanes: lanesOf(members, name),
    })
  }

  async #command(lanes: readonly string[], command: Command): Promise<void> {
    const { spec, per } = this.#breakerOf()
    const own = per === 'vendor' ? [ALL_LANES] : new Set(lanes)
    const ref = { guard: this.name, spec, command }
    await Promise.all(
      Array.from(own, async (lane) => this.#store.breakers.command({ ...ref, lane })),
    )
  }

  /** Lanes that live pods have used recently. */
  async #lanes(): Promise<string[]> {
    const lanes = lanesOf(await listMembers(this.#store), this.name)
    return lanes.size === 0 ? [DEFAULT_LANE] : [...lanes].slice(0, MOST_LANES)
  }

  #breakerOf() {
    if (this.#breaker !== undefined) return this.#breaker
    throw new OptionsError([{ path: 'guard', message: `'${this.name}' has no breaker` }])
  }

  #limitsOf(): LimitSettings {
    if (this.#limits !== undefined) return this.#limits
    const message = `'${this.name}' has no limits, so its calls need no permits`
    throw new OptionsError([{ path: 'guard', message }])
  }
}
