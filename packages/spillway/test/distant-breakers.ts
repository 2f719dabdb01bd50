/**
 * Breakers in a remote store, in virtual time: each round trip takes 2 ms, is recorded and may
 * fail.
 */
import { memoryStore } from '../src/store/memory/memory-store.js'
import type { BreakerReport, BreakerStore, BreakerView, Store } from '../src/store/port.js'
import type { VirtualClock } from '../src/testing/virtual-clock.js'

export type Fault = 'lose-request' | 'lose-reply' | 'late'

type Operation = 'report' | 'probe' | 'sync' | 'command'

const LEG_MS = 1
const LATE_MS = 500

export interface Distant {
  store: Store
  /** Faults of the next round trips of each kind. */
  faults: Record<Operation, Fault[]>
  trips: Record<Operation, number>
  /** All reports in the order in which they were sent. */
  reports: BreakerReport[]
  /** The store is unreachable. */
  down: boolean
  /** No published message arrives. */
  deaf: boolean
}

export function distantBreakers(clock: VirtualClock, near = memoryStore({ clock })): Distant {
  const leg = (ms: number) => new Promise<void>((resolve) => clock.schedule(ms, resolve))
  const far =
    <Q, A>(operation: Operation, run: (request: Q) => A | Promise<A>) =>
    async (request: Q): Promise<A> => {
      distant.trips[operation]++
      const fault = distant.faults[operation].shift()
      await leg(LEG_MS)
      if (distant.down || fault === 'lose-request') throw new Error('not sent')
      const answer = await run(request)
      await leg(fault === 'late' ? LATE_MS : LEG_MS)
      if (fault === 'lose-reply') throw new Error('no reply')
      return answer
    }
  const report = far('report', near.breakers.report)
  const breakers: BreakerStore = {
    report(request) {
      distant.reports.push(structuredClone(request))
      return report(request)
    },
    probe: far('probe', near.breakers.probe),
    sync: far('sync', near.breakers.sync),
    command: far('command', near.breakers.command),
    watch: ({ onView, onGap }) =>
      near.breakers.watch({
        onView(guard: string, lane: string, view: BreakerView) {
          if (!distant.deaf) clock.schedule(LEG_MS, () => onView(guard, lane, view))
        },
        onGap,
      }),
  }
  const distant: Distant = {
    store: { ...near, breakers },
    faults: { report: [], probe: [], sync: [], command: [] },
    trips: { report: 0, probe: 0, sync: 0, command: 0 },
    reports: [],
    down: false,
    deaf: false,
  }
  return distant
}
