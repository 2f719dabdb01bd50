/** Where a request may go: a target of its route, with what goes along. */
import type { TargetConfig } from '../config/config.js'
import type { ForwardedHeaders } from './headers.js'
import type { Vendor } from './vendor.js'
import type { VendorAddresses } from './vendor-addresses.js'

export interface Aim {
  readonly vendor: Vendor
  readonly target: TargetConfig
  readonly ownHeaders: readonly string[]
  readonly forwarded: ForwardedHeaders
  /** In its answers. */
  readonly addresses: VendorAddresses
}
