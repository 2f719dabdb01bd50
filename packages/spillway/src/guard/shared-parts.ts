/** The parts of a guard that it shares with other pods, and with the guard that replaces it. */
import type { Stage as StageName } from '../core/errors.js'
import type { Random } from '../core/random.js'
import type { Clock } from '../core/time/clock.js'
import { BreakerLanes } from '../shared/circuit-breaker/breaker-lanes.js'
import type { LaneRegistry } from '../shared/lanes/lane-registry.js'
import { type StoreWatch, watchStore } from '../shared/outage/store-watch.js'
import type { PermitDispatcher } from '../shared/permit-queue/permit-dispatcher.js'
import { LimitClient, type LimitClientOptions } from '../shared/rate-limiter/limit-client.js'
import { OutageLevels } from '../shared/user-limits/outage-levels.js'
import type { Store } from '../store/port.js'
import type { CheckedGuard } from './options.js'
import type { GuardTracer } from './pipeline/trace.js'

export interface GuardEnvironment {
  store: Store
  /** The store is in this process and uses the same clock. */
  sameClock: boolean
  /** The name of this pod's incarnation. */
  pod: string
  clock: Clock
  random: Random
  /** The number of pods to assume until the store has answered. */
  expectedPods: number
  tracer: GuardTracer | undefined
}

export interface SharedParts {
  readonly breaker: BreakerLanes | undefined
  /** Limits that are counted, enforced or in shadow mode. */
  readonly countedLimits: LimitClient | undefined
  /** Watches a remote store. */
  readonly watch: StoreWatch | undefined
  readonly outageLevels: OutageLevels | undefined
}

export function createBreaker(
  name: string,
  options: CheckedGuard,
  { store, pod, clock }: GuardEnvironment,
  watch: StoreWatch | undefined,
  lanes: LaneRegistry,
  before: SharedParts | undefined,
  shadowed: ReadonlySet<StageName>,
): BreakerLanes | undefined {
  if (options.breaker === undefined) return undefined
  const policy = { ...options.breaker, shadow: shadowed.has('breaker') }
  const known = before?.breaker
  if (known?.hasPolicy(policy) === true) return known.share()
  const breaker = new BreakerLanes({
    name,
    store,
    pod,
    clock,
    policy,
    timeoutMs: options.timeout?.callMs ?? options.timeout?.firstByteMs,
    watch,
    lanes,
  })
  if (known !== undefined) breaker.continueFrom(known)
  return breaker
}

export function createLimits(
  name: string,
  options: CheckedGuard,
  { store, pod, clock }: GuardEnvironment,
  watch: StoreWatch | undefined,
  lanes: LaneRegistry,
  before: SharedParts | undefined,
  later: {
    dispatcher(): PermitDispatcher
    breaker(): BreakerLanes | undefined
  },
): LimitClient | undefined {
  const { limits, lanes: entries, pools, jitterMs, basePauseMs, maxPauseMs } = options
  if (limits === undefined) {
    lanes.shareOverflow(undefined)
    return undefined
  }
  const clientOptions: LimitClientOptions = {
    name,
    store: store.limits,
    pod,
    clock,
    limits,
    lanes: entries,
    pools,
    jitterMs,
    basePauseMs,
    maxPauseMs,
    registry: lanes,
    remote: store.remote,
    watch,
    onGivenBack: (lane) => later.dispatcher().unblock(lane),
    onLimitsChanged: () => later.dispatcher().unblockAll(),
    piggybackReport: (lane) => later.breaker()?.piggybackReport(lane),
  }
  const client = new LimitClient(clientOptions, before?.countedLimits)
  lanes.shareOverflow(client.settings)
  return client
}

export function createOutageLevels(
  name: string,
  { userLimits }: CheckedGuard,
  { clock, random }: GuardEnvironment,
  watch: StoreWatch | undefined,
  before: SharedParts | undefined,
): OutageLevels | undefined {
  if (userLimits === undefined || watch === undefined) return undefined
  return before?.outageLevels ?? new OutageLevels(name, watch, clock, random)
}

export function createWatch(
  name: string,
  { limits, breaker, userLimits }: CheckedGuard,
  { store, tracer: _, sameClock: __, ...environment }: GuardEnvironment,
  before: SharedParts | undefined,
): StoreWatch | undefined {
  const shares = (limits ?? breaker ?? userLimits) !== undefined
  if (!shares) return undefined
  return before?.watch?.share() ?? watchStore(store, { name, ...environment })
}
