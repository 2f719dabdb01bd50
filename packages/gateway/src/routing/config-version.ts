/** Routes, callers and targets built from one configuration, for the requests that began under it. */
import type { Clock } from 'spillway'
import type { GatewayConfig, RouteConfig, TargetConfig } from '../config/config.js'
import { FallbackAnswers } from '../degrade/fallback-answers.js'
import type { Protocol } from '../protocols/protocol.js'
import type { AsyncRequests } from '../request/async-requests.js'
import type { BodyMemory } from '../request/body/body.js'
import { Callers } from '../request/callers.js'
import type { RequestRecord } from '../request/record.js'
import type { RequestTracer } from '../request/trace.js'
import { ForwardedHeaders } from '../vendor/forwarded-headers.js'
import type { Vendor } from '../vendor/vendor.js'
import { VendorAddresses } from '../vendor/vendor-addresses.js'
import { Routes } from './routes.js'
import type { Target } from './target.js'

/** Parts of the gateway that outlive a configuration. */
export interface RequestHooks {
  readonly clock: Clock
  /** Called when a request has ended. */
  onRecord(record: RequestRecord): void
  /** Called with unexpected errors of the gateway. */
  onFailure(error: unknown): void
  /** Set if tracing is configured. */
  readonly tracer: RequestTracer | undefined
  /** No longer ready: connections are closed after their answer. */
  readonly draining: boolean
  /** Shared by all requests of this process. */
  readonly bodyMemory: BodyMemory
  /** Set if job queues are configured. */
  readonly asyncRequests: AsyncRequests | undefined
}

export class ConfigVersion {
  readonly config: GatewayConfig
  readonly routes: Routes
  readonly callers: Callers
  readonly vendors: ReadonlyMap<string, Vendor>
  readonly hooks: RequestHooks
  readonly #targets: ReadonlyMap<RouteConfig, readonly Target[]>
  /** Of those routes that have any, by name. */
  readonly #fallbackAnswers = new Map<string, FallbackAnswers>()
  /** Requests that began under this configuration and are not over. */
  #running = 0
  #onIdle: (() => void) | undefined

  /** `before`: the configuration that this one replaces. */
  constructor(
    config: GatewayConfig,
    vendors: ReadonlyMap<string, Vendor>,
    hooks: RequestHooks,
    before?: ConfigVersion,
  ) {
    this.config = config
    this.vendors = vendors
    this.hooks = hooks
    this.routes = new Routes(config)
    this.callers = new Callers(config.callers)
    this.#targets = new Map(
      config.routes.map((route) => [
        route,
        route.targets.map((target) => this.#createTarget(target, route, vendors)),
      ]),
    )
    for (const { name, fallbackAnswers } of config.routes) {
      if (fallbackAnswers === undefined) continue
      const known = before === undefined ? undefined : before.#fallbackAnswers.get(name)
      this.#fallbackAnswers.set(name, new FallbackAnswers(fallbackAnswers, hooks.clock, known))
    }
  }

  enter(): void {
    this.#running++
  }

  leave(): void {
    if (--this.#running === 0) this.#onIdle?.()
  }

  /** Called when no more requests begin under it. Resolves when the last one has ended. */
  retire(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve
      if (this.#running === 0) resolve()
    })
  }

  targetsOf(route: RouteConfig): readonly Target[] {
    return this.#targets.get(route) ?? []
  }

  /** Undefined if the route has no such fallbacks. */
  fallbackAnswersOf({ name, fallbackAnswers }: RouteConfig): FallbackAnswers | undefined {
    return fallbackAnswers && this.#fallbackAnswers.get(name)
  }

  /** Whether these routes are chosen by model, replace it, or have limits that count tokens. */
  contentDecides(rows: readonly { readonly route: RouteConfig }[]): boolean {
    return rows.some(
      ({ route }) =>
        route.models !== undefined ||
        this.targetsOf(route).some(
          ({ config, vendor }) => config.model !== undefined || vendor.limitsTokens,
        ),
    )
  }

  /** All targets of a route have the same protocol. */
  protocolOf(route: RouteConfig): Protocol {
    return (this.targetsOf(route)[0] as Target).vendor.protocol
  }

  #createTarget(
    config: TargetConfig,
    { targets: [first], stripPrefix }: RouteConfig,
    vendors: ReadonlyMap<string, Vendor>,
  ): Target {
    const vendor = vendors.get(config.vendor)
    if (vendor === undefined) throw new TypeError(`no vendor ${config.vendor}`)
    return {
      vendor,
      config,
      ownHeaders: vendor.ownHeaders(config),
      forwarded: new ForwardedHeaders({
        own: new Set(vendor.ownNames),
        compression: vendor.protocol.name === 'http',
        // Without `callers` and without a configured vendor key, the client's key is for the vendor of the first
        // target, and must not be sent to other vendors.
        credentials: !vendor.hasKey && !this.callers.known && config.vendor === first.vendor,
      }),
      addresses: new VendorAddresses(vendor.url, stripPrefix),
    }
  }
}
