/** One act: a pod, its vendor, and its clients. */
import { type Clock, createRandom } from 'spillway/testing'
import { sendClients } from './clients.js'
import { createNaivePod } from './naive-pod.js'
import type { Pod, PodOptions } from './pod.js'
import { createProtectedPod } from './protected-pod.js'
import { VENDOR } from './scenario.js'
import { type Summary, summarise } from './summary.js'
import { createVendor, type Vendor } from './vendor.js'
import type { Visit } from './visits.js'

export interface Act {
  title: string
  /** A short description of the pod. */
  means: string
  createPod: (options: PodOptions) => Pod
}

export const ACTS: readonly Act[] = [
  {
    title: 'unprotected',
    means: 'a timeout, three retries, no limits',
    createPod: createNaivePod,
  },
  {
    title: 'with Spillway',
    means: '20 at once, a line of 20, retries on a budget',
    createPod: createProtectedPod,
  },
]

/** The state of a running act, for the live view. */
export interface Stage {
  readonly pod: Pod
  readonly vendor: Vendor
  readonly visits: readonly Visit[]
  /** Milliseconds since it began. */
  elapsedMs(): number
}

export interface ActOptions {
  clock: Clock
  /** The same seed gives the same clients at the same times. */
  seed: number
  /** Called at the start of the act. The function it returns is called at the end. */
  watch?: (stage: Stage) => () => void
}

export async function play(act: Act, { clock, seed, watch }: ActOptions): Promise<Summary> {
  const random = createRandom(seed + 1)
  const vendor = createVendor({ ...VENDOR, clock, random })
  const pod = act.createPod({ vendor, clock, random })
  const visits: Visit[] = []
  const startMs = clock.now()
  const stopWatching = watch?.({ pod, vendor, visits, elapsedMs: () => clock.now() - startMs })
  await sendClients({ pod, clock, random: createRandom(seed), visits })
  stopWatching?.()
  const summary = summarise(visits, vendor)
  // Calls that the pod left running must not continue in the next act.
  vendor.close()
  return summary
}
