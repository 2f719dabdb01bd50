/** The network between one pod and the vendor, which may fail on its own. */
import type { Clock } from 'spillway'
import type { VendorCallOptions } from 'spillway/testing'
import type { Caller, VendorSide } from './vendor-side.js'

const REFUSED_MS = 1

export class VendorLink {
  state: 'recover' | 'fail' | 'hang' = 'recover'

  constructor(
    readonly vendor: VendorSide,
    readonly clock: Clock,
  ) {}

  call(options?: VendorCallOptions, caller?: Caller): Promise<unknown> {
    if (this.state === 'recover') return this.vendor.call(options, caller)
    return new Promise((_, reject) => {
      // A hanging call never ends: the caller needs a timeout.
      if (this.state === 'hang') return
      const reset = Object.assign(new Error('the connection was reset'), { code: 'ECONNRESET' })
      this.clock.schedule(REFUSED_MS, () => reject(reset))
    })
  }
}
