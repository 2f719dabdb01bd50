import type { Clock, Random } from 'spillway/testing'
import type { Vendor } from './vendor.js'

/** Interface of both pods, which serve clients by calling the vendor. */
export interface Pod {
  /** Serves a request whose client is going to wait for `patienceMs`. */
  handle(patienceMs: number): Promise<string>
  /** Requests waiting in the pod for their turn. */
  readonly waiting: number
}

export interface PodOptions {
  vendor: Vendor
  clock: Clock
  random: Random
}
