/**
 * A gateway's configuration as the rest of the gateway sees it: checked, secrets read, defaults filled
 * in. How it is written down is `shape.ts`.
 */
import type { GuardOptions, JobQueueOptions, Priority } from 'spillway'
import type { RedisStoreOptions } from 'spillway/redis'
import type { LlmProtocol, RoutePath } from './default-paths.js'
import type { ServerLimits } from './shapes/server-limits-shape.js'

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
  /** It receives the remaining time and the number of the attempt, and says whether it has retried. */
  readonly hops: boolean
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
  /** Which requests it takes: those of one path, or of the default paths. */
  readonly paths: readonly RoutePath[]
  /** Set if the route names no path: it takes the default paths of this protocol. */
  readonly defaultsOf: LlmProtocol | undefined
  /** Exact names or patterns with `*`. Undefined: every model, and requests without a model. */
  readonly models: readonly string[] | undefined
  /**
   * How many of the targets are equals, of which each request picks one by what they have left; the others
   * are fallbacks. 1: the first is the one.
   */
  readonly choices: number
  /** Tried in order, after the pick; all of one protocol. */
  readonly targets: readonly [TargetConfig, ...TargetConfig[]]
  /** Everything, to the last byte; none by default: a good stream may take minutes. */
  readonly timeoutMs: number | undefined
  /** Comments on a stream that has not begun, so often; none: no such comments. */
  readonly keepAliveMs: number | undefined
  /** Of an `http` vendor: this much of the path is not passed on. */
  readonly stripPrefix: string | undefined
}

/** For requests that may wait. */
export interface QueueConfig {
  readonly name: string
  /** Which requests: those that would go to this vendor, with this key, for this model. */
  readonly vendor: string
  readonly key: string | undefined
  /** None: of a vendor that knows no models. */
  readonly model: string | undefined
  readonly settings: Omit<JobQueueOptions, 'guard' | 'lane'>
  /** Of no use after this, unless the request says less. */
  readonly timeoutMs: number
  /** Jobs that run at once in each gateway; with 0 this gateway only accepts jobs, and others run them. */
  readonly concurrency: number
  /** By tier; without one, that of the caller. */
  readonly priorities: Readonly<Record<string, Priority>>
  /** A request with a larger body is answered at once. */
  readonly maxRequestBytes: number
  /** A larger answer is none. */
  readonly maxAnswerBytes: number
}

/** A client that may use the gateway. */
export interface CallerConfig {
  /** SHA-256 of its key, in hex: the key itself is not kept. */
  readonly keyHash: string
  readonly user: string
  readonly tier: string | undefined
  readonly priority: Priority
}

/** How to reach the store. */
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
  > {}

export interface CorsConfig {
  /** Origins of pages that may use the gateway, such as `https://app.example`; `*`: any. */
  readonly origins: readonly string[]
  /** How long browsers remember the answer to a preflight. */
  readonly maxAgeMs: number
}

export interface TracingConfig {
  /** Whether a request that says it is part of a trace is believed. */
  readonly fromCallers: boolean
  /** Whether requests to vendors carry the trace. */
  readonly toVendors: boolean
}

export interface GatewayConfig {
  readonly host: string
  readonly port: number
  /** Path of a Unix socket to listen on in place of `host` and `port`. */
  readonly listen: string | undefined
  readonly admin: {
    readonly host: string
    readonly port: number
    /** The token of operators; without one, requests from this machine are an operator's. */
    readonly token: string | undefined
    /** Who may read without being one. */
    readonly readAccess: 'operators' | 'local' | 'public'
    /** Names besides `localhost` and addresses under which the admin port may be asked. */
    readonly hosts: readonly string[]
  }
  /** Shared state; none: in this process alone. */
  readonly redis: RedisConfig | undefined
  readonly pod: string | undefined
  /** How many gateways share the limits, as long as the store has never said. */
  readonly expectedPods: number
  /** Number of processes that serve the data port. Each is a pod. 1: no process besides this one. */
  readonly workers: number
  readonly vendors: readonly VendorConfig[]
  readonly routes: readonly RouteConfig[]
  readonly jobQueues: readonly QueueConfig[] | undefined
  /** Undefined: every client may use the gateway, as `anonymous`. */
  readonly callers: readonly CallerConfig[] | undefined
  readonly body: {
    /** A body that is not read is held up to this size, and streamed beyond it. */
    readonly keepBytes: number
    /** A larger body is refused with 413, compressed or decompressed. */
    readonly maxBytes: number
    /** All bodies that this process holds at once; a request beyond it is refused with 503. */
    readonly maxTotalBytes: number
  }
  /** Pages of other origins that may use the data port; undefined: none. */
  readonly cors: CorsConfig | undefined
  /** What a client may do to the data port. */
  readonly server: ServerLimits
  /** How long running requests may go on after SIGTERM. */
  readonly drain: { readonly graceMs: number; readonly delayMs: number }
  /** Spans, through whatever OpenTelemetry SDK the process was started with; none: no spans. */
  readonly tracing: TracingConfig | undefined
  /** Whether the gateway looks by itself whether its file has changed. */
  readonly reload: { readonly watch: boolean }
  readonly log: { readonly level: 'debug' | 'info' | 'warn' | 'error' | 'silent' }
}
