/** What one configuration makes: everything that the requests which began under it have in common. */
import type { GatewayConfig, RouteConfig, TargetConfig } from '../config/config.js'
import type { Protocol } from '../protocols/protocol.js'
import { Routes } from '../routing/routes.js'
import type { Aim } from './aim.js'
import { Callers } from './callers.js'
import type { Deferral } from './deferral.js'
import { ForwardedHeaders } from './headers.js'
import type { RequestRecord } from './record.js'
import type { RequestTracer } from './trace.js'
import type { Vendor } from './vendor.js'
import { VendorAddresses } from './vendor-addresses.js'

/** What does not depend on the configuration. */
export interface SiteHooks {
  /** Told of each request when it is over. */
  onRecord(record: RequestRecord): void
  /** Told of errors that should not be. */
  onFailure(error: unknown): void
  /** Follows every request, if somebody wants that. */
  readonly tracer: RequestTracer | undefined
  /** No longer ready: connections are closed after their answer. */
  readonly draining: boolean
  /** For requests whose answer may come later; none without queues. */
  readonly deferral: Deferral | undefined
}

export class Site {
  readonly config: GatewayConfig
  readonly routes: Routes
  readonly callers: Callers
  readonly vendors: ReadonlyMap<string, Vendor>
  readonly hooks: SiteHooks
  readonly #aims: ReadonlyMap<RouteConfig, readonly Aim[]>
  /** Requests that began under this configuration and are not over. */
  #running = 0
  #onIdle: (() => void) | undefined

  constructor(config: GatewayConfig, vendors: ReadonlyMap<string, Vendor>, hooks: SiteHooks) {
    this.config = config
    this.vendors = vendors
    this.hooks = hooks
    this.routes = new Routes(config)
    this.callers = new Callers(config.callers)
    this.#aims = new Map(
      config.routes.map((route) => [
        route,
        route.targets.map((target) => this.#aimAt(target, route, vendors)),
      ]),
    )
  }

  enter(): void {
    this.#running++
  }

  leave(): void {
    if (--this.#running === 0) this.#onIdle?.()
  }

  /** No request begins under it any more. Resolves when the last one is over. */
  retire(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve
      if (this.#running === 0) resolve()
    })
  }

  aimsOf(route: RouteConfig): readonly Aim[] {
    return this.#aims.get(route) ?? []
  }

  /** Whether these routes are chosen by model, replace it, or have limits that count tokens. */
  contentDecides(rows: readonly { readonly route: RouteConfig }[]): boolean {
    return rows.some(
      ({ route }) =>
        route.models !== undefined ||
        this.aimsOf(route).some(
          ({ target, vendor }) => target.model !== undefined || vendor.limitsTokens,
        ),
    )
  }

  /** Of one route all targets speak the same. */
  protocolOf(route: RouteConfig): Protocol {
    return (this.aimsOf(route)[0] as Aim).vendor.protocol
  }

  #aimAt(
    target: TargetConfig,
    { targets: [first], stripPrefix }: RouteConfig,
    vendors: ReadonlyMap<string, Vendor>,
  ): Aim {
    const vendor = vendors.get(target.vendor)
    if (vendor === undefined) throw new TypeError(`no vendor ${target.vendor}`)
    return {
      vendor,
      target,
      ownHeaders: vendor.ownHeaders(target),
      forwarded: new ForwardedHeaders({
        own: new Set(vendor.ownNames),
        // Without a key of ours, and without callers of ours, the client's key is the vendor's: that of
        // the vendor it meant to ask.
        credentials: !vendor.hasKey && !this.callers.known && target.vendor === first.vendor,
      }),
      addresses: new VendorAddresses(vendor.url, stripPrefix),
    }
  }
}
