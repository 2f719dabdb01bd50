/**
 * A gateway's configuration after validation: secrets are read, defaults are filled in. `shapes/gateway-shape.ts`
 * defines the format of the file.
 */
import type { GuardOptions, JobQueueOptions, Priority } from 'spillway'
import type { DegradedReason } from 'spillway/degrade'
import type { ErrorKind, EstimateName, QuotaSetting } from 'spillway/internal'
import type { RedisStoreOptions } from 'spillway/redis'
import type { LlmProtocol, RoutePath } from './default-paths.js'
import type { HealthConfig } from './shapes/health-shape.js'
import type { ServerLimits } from './shapes/server-limits-shape.js'

/** Protocol of a vendor: that of OpenAI, of Anthropic, or plain HTTP. */
export type ProtocolName = 'openai' | 'anthropic' | 'gemini' | 'azure' | 'http'

/** One of your API keys at a vendor. */
export interface VendorKey {
  /** Name in lanes, logs and the dashboard. */
  readonly name: string
  /** The key itself. */
  readonly secret: string
}

/** A vendor that requests are sent to. */
export interface VendorConfig {
  /** Name in routes, metrics and the dashboard. */
  readonly name: string
  /** Its protocol, which defines how models, tokens and streams are read. */
  readonly protocol: ProtocolName
  /** Origin and path prefix; never from a request. `mock`: the vendor inside the gateway. */
  readonly url: string
  /** The first one is used unless a target names another; none: no key is sent. */
  readonly keys: readonly VendorKey[]
  /** Sent with every request, secrets included. */
  readonly headers: Readonly<Record<string, string>>
  /** Whether it receives the remaining time and the number of the attempt, and reports its own retries. */
  readonly hops: boolean
  /** Rules by which the vendor counts tokens towards its limits. */
  readonly quota: QuotaSetting
  /** Source of the number of tokens to reserve. */
  readonly estimate: EstimateName
  /** False: a rejected key stays in use, and no other key of the vendor takes over. Default: true. */
  readonly keyQuarantine?: boolean
  /** Longest time until a connection is open. */
  readonly connectMs: number
  /** Limits of single models. Their entries are in `guard.lanes`, for each key if there are several. */
  readonly models?: readonly ModelLimitsConfig[]
  /** Limits that several models share, by name. */
  readonly pools?: PoolsConfig
  /** Options of its guard: limits, breaker, queue, timeouts, retries. */
  readonly guard: Omit<GuardOptions, 'fetch' | 'classify'>
}

/** Limits of the models whose names match. */
export type ModelLimitsConfig = NonNullable<GuardOptions['lanes']>[number]

/** Limits that several models share, by name of the pool. */
export type PoolsConfig = NonNullable<GuardOptions['pools']>

/** A target of a route. */
export interface TargetConfig {
  /** Name of the vendor. */
  readonly vendor: string
  /** Name of one of the vendor's keys. */
  readonly key: string | undefined
  /** Replaces the model of the request. */
  readonly model: string | undefined
  /** Used before the others while the pressure is at least this value, otherwise skipped. Undefined: always used. */
  readonly when?: { readonly pressure: number } | undefined
  /** Only used after an error of one of these kinds. Undefined: after failures and refusals. */
  readonly on?: readonly ErrorKind[] | undefined
}

/** An answer that needs no vendor, for a request that no target has answered. */
export type FallbackAnswerConfig = CachedAnswerConfig | StaticAnswerConfig

/** Fallback: the last good answer to an equal request. */
export interface CachedAnswerConfig {
  readonly kind: 'cached'
  /** The reasons for which it answers. */
  readonly on: readonly DegradedReason[]
  /** Older answers are not used. */
  readonly maxAgeMs: number
  /** Whether callers get answers to requests of other callers. */
  readonly shared: boolean
  /** Most answers kept. */
  readonly maxEntries: number
  /** Most bytes of all answers together. */
  readonly maxBytes: number
  /** A larger answer is not kept. */
  readonly maxAnswerBytes: number
  /** Fields at the top of a body that do not make it another request. A name may end in `*`. */
  readonly ignoreFields: readonly string[]
  /** Headers that do not make it another request, in lower case. A name may end in `*`. */
  readonly ignoreHeaders: readonly string[]
}

/** Fallback: a constant answer. */
export interface StaticAnswerConfig {
  readonly kind: 'static'
  /** The reasons for which it answers. */
  readonly on: readonly DegradedReason[]
  /** Status of the answer. */
  readonly status: number
  /** Text of the answer, put into the format of the protocol and the path. */
  readonly text: string | undefined
  /** The body in place of `text`. */
  readonly body: string | undefined
  /** Type of `body`. */
  readonly contentType: string | undefined
}

/** Maps requests to targets. */
export interface RouteConfig {
  /** Name in logs and metrics. */
  readonly name: string
  /** The requests of this route: those of one path, or of the default paths. */
  readonly paths: readonly RoutePath[]
  /** Set if the route names no path: it takes the default paths of this protocol. */
  readonly defaultsOf: LlmProtocol | undefined
  /** Exact names or patterns with `*`. Undefined: every model, and requests without a model. */
  readonly models: readonly string[] | undefined
  /**
   * Number of targets of which each request picks the one with the most capacity left; the others are
   * fallbacks. 1: the first target is preferred.
   */
  readonly choices: number
  /** Tried in order, after the pick; all of one protocol. */
  readonly targets: readonly [TargetConfig, ...TargetConfig[]]
  /** Used in order if no target has answered. Undefined: the error of the last target is the answer. */
  readonly fallbackAnswers?: readonly FallbackAnswerConfig[] | undefined
  /** Time for the whole answer. Undefined: no limit, because a stream may take minutes. */
  readonly timeoutMs: number | undefined
  /** Interval of comments on a stream that has not begun. Undefined: none are sent. */
  readonly keepAliveMs: number | undefined
  /** For `http` vendors: this prefix of the path is not forwarded. */
  readonly stripPrefix: string | undefined
}

/** A job queue for requests that may wait. */
export interface QueueConfig {
  /** Name of the job queue. */
  readonly name: string
  /** The vendor of the requests that it accepts. */
  readonly vendor: string
  /** Name of the vendor's key that they use. */
  readonly key: string | undefined
  /** Their model. Undefined for a vendor without models. */
  readonly model: string | undefined
  /** Options of the job queue. */
  readonly settings: Omit<JobQueueOptions, 'guard' | 'lane'>
  /** A job that has not started by then becomes a dead letter, unless the request sets a shorter time. */
  readonly timeoutMs: number
  /** Jobs that run at once in each gateway; with 0 this gateway only accepts jobs, and others run them. */
  readonly concurrency: number
  /** Priority by tier. Default: that of the caller. */
  readonly priorities: Readonly<Record<string, Priority>>
  /** A request with a larger body is answered synchronously. */
  readonly maxRequestBytes: number
  /** A larger answer is a failure of the job. */
  readonly maxAnswerBytes: number
}

/** A client that may use the gateway. */
export interface CallerConfig {
  /** SHA-256 of its key, in hex: the key itself is not kept. */
  readonly keyHash: string
  /** User for limits, logs and metrics. */
  readonly user: string
  /** Tier of the user. */
  readonly tier: string | undefined
  /** Priority of its requests. */
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

/** Pages of other origins that may use the data port. */
export interface CorsConfig {
  /** Origins of pages that may use the gateway, such as `https://app.example`; `*`: any. */
  readonly origins: readonly string[]
  /** How long browsers may cache the answer to a preflight. */
  readonly maxAgeMs: number
}

/** How traces are continued. */
export interface TracingConfig {
  /** Whether the trace context of a request is used as the parent of its spans. */
  readonly fromCallers: boolean
  /** Whether requests to vendors carry the trace context. */
  readonly toVendors: boolean
}

/** A checked configuration, as `loadConfig` returns it: secrets are read, defaults are filled in. */
export interface GatewayConfig {
  /** Address of the data port. */
  readonly host: string
  /** The data port, for requests of callers. */
  readonly port: number
  /** Path of a Unix socket to listen on in place of `host` and `port`. */
  readonly listen: string | undefined
  /** The admin port: health, metrics, operator actions, dashboard. */
  readonly admin: {
    /** Address of the admin port. */
    readonly host: string
    /** The admin port. */
    readonly port: number
    /** Token of operators. Without one, requests from this machine count as those of an operator. */
    readonly token: string | undefined
    /** Who may read without the token. */
    readonly readAccess: 'operators' | 'local' | 'public'
    /** Host names besides `localhost` and addresses under which the admin port answers. */
    readonly hosts: readonly string[]
    /** How long actions of operators stay in the audit log. */
    readonly auditMs: number
  }
  /** Store for the state of all gateways. Undefined: state of this process only. */
  readonly redis: RedisConfig | undefined
  /** Name of this gateway in the fleet. */
  readonly pod: string | undefined
  /** Least number of gateways among which the limits are divided while the store is unreachable. */
  readonly expectedPods: number
  /** Number of processes that serve the data port. Each is a pod. 1: no process besides this one. */
  readonly workers: number
  /** The vendors. */
  readonly vendors: readonly VendorConfig[]
  /** The routes. The first one that matches a request is used. */
  readonly routes: readonly RouteConfig[]
  /** Job queues for requests that may wait. Undefined: none. */
  readonly jobQueues: readonly QueueConfig[] | undefined
  /** Undefined: every client may use the gateway, as `anonymous`. */
  readonly callers: readonly CallerConfig[] | undefined
  /** Sizes of request bodies. */
  readonly body: {
    /** A body that is not read is held up to this size, and streamed beyond it. */
    readonly keepBytes: number
    /** A larger body is refused with 413, compressed or decompressed. */
    readonly maxBytes: number
    /** Bytes of all bodies that this process holds at once; a request beyond it is refused with 503. */
    readonly maxTotalBytes: number
  }
  /** Pages of other origins that may use the data port; undefined: none. */
  readonly cors: CorsConfig | undefined
  /** Limits of the data port for clients. */
  readonly server: ServerLimits
  /** Readiness under overload. */
  readonly health: HealthConfig
  /** Times of a shutdown. */
  readonly drain: {
    /** Longest time for running requests. */
    readonly graceMs: number
    /** Time between failing readiness and closing the listener. */
    readonly delayMs: number
  }
  /** Spans for the OpenTelemetry SDK of the process. Undefined: none. */
  readonly tracing: TracingConfig | undefined
  /** Telemetry under the conventions of other projects. */
  readonly telemetry: {
    /** Metrics and span attributes under the GenAI conventions of OpenTelemetry. */
    readonly genAi: boolean
  }
  /** Reloading of the configuration. */
  readonly reload: {
    /** Whether the gateway reloads when its file changes. */
    readonly watch: boolean
  }
  /** The log. */
  readonly log: {
    /** The lowest level that is written. */
    readonly level: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  }
}

/** The names of each vendor's keys, for operators. */
export function keyNames(vendors: readonly VendorConfig[]): Record<string, readonly string[]> {
  return Object.fromEntries(vendors.map(({ name, keys }) => [name, keys.map((key) => key.name)]))
}
