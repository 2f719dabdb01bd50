/** What all requests of one gateway have in common. */
import type { GatewayConfig, RouteConfig, TargetConfig } from '../config/config.js'
import type { Protocol } from '../protocols/protocol.js'
import { Callers } from './callers.js'
import type { Deferral } from './deferral.js'
import type { ForwardOptions } from './headers.js'
import type { RequestRecord } from './record.js'
import { Routes } from './routes.js'
import type { Vendor } from './vendor.js'

/** A target, with all that does not change from request to request. */
export interface Aim {
  readonly vendor: Vendor
  readonly target: TargetConfig
  readonly ownHeaders: readonly string[]
  readonly forward: ForwardOptions
}

export class Site {
  readonly config: GatewayConfig
  readonly routes: Routes
  readonly callers: Callers
  /** Told of each request when it is over. */
  readonly onRecord: (record: RequestRecord) => void
  /** Told of errors that should not be. */
  readonly onFailure: (error: unknown) => void
  /** No longer ready: connections are closed after their answer. */
  draining = false
  /** For requests whose answer may come later; none without queues. */
  deferral: Deferral | undefined
  readonly #aims: ReadonlyMap<RouteConfig, readonly Aim[]>

  constructor(
    config: GatewayConfig,
    vendors: ReadonlyMap<string, Vendor>,
    { onRecord, onFailure }: Pick<Site, 'onRecord' | 'onFailure'>,
  ) {
    this.config = config
    this.onRecord = onRecord
    this.onFailure = onFailure
    this.routes = new Routes(config.routes)
    this.callers = new Callers(config.callers)
    this.#aims = new Map(
      config.routes.map((route) => [
        route,
        route.targets.map((target) => this.#aimAt(target, route, vendors)),
      ]),
    )
  }

  aimsOf(route: RouteConfig): readonly Aim[] {
    return this.#aims.get(route) ?? []
  }

  /** Of one route all targets speak the same. */
  protocolOf(route: RouteConfig): Protocol {
    return (this.aimsOf(route)[0] as Aim).vendor.protocol
  }

  #aimAt(
    target: TargetConfig,
    { targets: [first] }: RouteConfig,
    vendors: ReadonlyMap<string, Vendor>,
  ): Aim {
    const vendor = vendors.get(target.vendor)
    if (vendor === undefined) throw new TypeError(`no vendor ${target.vendor}`)
    return {
      vendor,
      target,
      ownHeaders: vendor.ownHeaders(target),
      forward: {
        own: new Set(vendor.ownNames),
        // Without a key of ours, and without callers of ours, the client's key is the vendor's: that of
        // the vendor it meant to ask.
        credentials: !vendor.hasKey && !this.callers.known && target.vendor === first.vendor,
      },
    }
  }
}
