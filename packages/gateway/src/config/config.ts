/**
 * A gateway's configuration as the rest of the gateway sees it: checked, secrets read, defaults filled
 * in. How it is written down is `shape.ts`.
 */
import type { GuardOptions, Priority } from 'spillway'
import type { RedisStoreOptions } from 'spillway/redis'

export type ProtocolName = 'openai' | 'anthropic' | 'http'

/** An API key of ours at a vendor. */
export interface VendorKey {
  readonly name: string
  readonly secret: string
}

export interface VendorConfig {
  readonly name: string
  readonly protocol: ProtocolName
  /** Origin and path prefix; never from a request. `mock`: the vendor inside the gateway. */
  readonly url: string
  /** The first one is used unless a target names another; none: no key is sent. */
  readonly keys: readonly VendorKey[]
  /** Sent with every request, secrets included. */
  readonly headers: Readonly<Record<string, string>>
  /** Longest time until a connection stands. */
  readonly connectMs: number
  readonly guard: Omit<GuardOptions, 'fetch' | 'classify'>
}

/** Where a request may go. */
export interface TargetConfig {
  readonly vendor: string
  /** Name of one of the vendor's keys. */
  readonly key: string | undefined
  /** Takes the place of the model that was asked for. */
  readonly model: string | undefined
}

export interface RouteConfig {
  readonly name: string
  /** Exact, or up to a `*` at its end. */
  readonly path: string
  /** Exact, or with `*`; none: any model, and requests without one. */
  readonly models: readonly string[] | undefined
  /** Tried in order; all of one protocol. The first is the one, the others are fallbacks. */
  readonly targets: readonly [TargetConfig, ...TargetConfig[]]
  /** Everything, to the last byte; none by default: a good stream may take minutes. */
  readonly timeoutMs: number | undefined
  /** Comments on a stream that has not begun, so often; none: no such comments. */
  readonly keepAliveMs: number | undefined
  /** Of an `http` vendor: this much of the path is not passed on. */
  readonly stripPrefix: string | undefined
}

/** Somebody who may use the gateway. */
export interface CallerConfig {
  readonly secret: string
  readonly user: string
  readonly tier: string | undefined
  readonly priority: Priority
}

/** How to reach the store, and how many share it. */
export interface RedisConfig
  extends Pick<
    RedisStoreOptions,
    | 'url'
    | 'urls'
    | 'sentinels'
    | 'master'
    | 'username'
    | 'password'
    | 'database'
    | 'tls'
    | 'prefix'
    | 'commandTimeoutMs'
  > {
  /** How many gateways there are, as long as the store has never answered. */
  readonly expectedPods: number | undefined
}

export interface GatewayConfig {
  readonly host: string
  readonly port: number
  readonly admin: {
    readonly host: string
    readonly port: number
    /** What operators have to show; none: whoever is on this machine is one. */
    readonly token: string | undefined
  }
  /** Shared state; none: in this process alone. */
  readonly redis: RedisConfig | undefined
  readonly pod: string | undefined
  readonly vendors: readonly VendorConfig[]
  readonly routes: readonly RouteConfig[]
  /** None: anybody may, as `anonymous`. */
  readonly callers: readonly CallerConfig[] | undefined
  readonly body: {
    /** A request's body up to this size is kept, so that it can be sent again. */
    readonly keepBytes: number
    /** A larger one is refused with 413. */
    readonly maxBytes: number
  }
  /** How long running requests may go on after SIGTERM. */
  readonly drain: { readonly graceMs: number; readonly delayMs: number }
  readonly log: { readonly level: 'debug' | 'info' | 'warn' | 'error' | 'silent' }
}
