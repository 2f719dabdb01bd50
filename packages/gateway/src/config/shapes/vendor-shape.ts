/** Format of a vendor. */
import type { GuardOptions } from 'spillway'
import { ESTIMATE_NAMES, quotaOf } from 'spillway/internal'
import {
  about,
  bool,
  type Check,
  described,
  describedAs,
  duration,
  type JsonSchema,
  type OptionProblem,
  object,
  oneOf,
  optional,
  readGuardOptions,
  schemaOf,
} from 'spillway/options'
import { canonicalPath } from '../../request/validation/request-url.js'
import type { ProtocolName, VendorConfig, VendorKey } from '../config.js'
import type { ConfigProblem } from '../config-error.js'
import { readHeaders } from './header-shape.js'
import { checkUnits, withLearning, withUnits } from './limit-units.js'
import { guardLanes, modelLimitsSchema, readModelLimits } from './model-limits-shape.js'
import { readNamedMap } from './named-map.js'
import { quotaRules, readVendorQuota, withWindows } from './quota-shape.js'
import { type Sources, secret } from './secret-reference.js'

/** Also for vendors with mistakes, so that routes to them are not reported as well. */
export interface WrittenVendor {
  readonly name: string
  readonly protocol: ProtocolName | undefined
  /** Undefined if unknown. */
  readonly keyNames: readonly string[] | undefined
  /** Valid only if there are no problems. */
  readonly config: VendorConfig
}

/** Guard options of a vendor in a file. Fallbacks belong to routes; functions cannot be written in a file. */
const GUARD_OPTIONS: Record<
  Exclude<keyof GuardOptions, 'fetch' | 'classify' | 'fallback' | 'stages' | 'lanes' | 'pools'>,
  true
> = {
  shed: true,
  userLimits: true,
  queue: true,
  breaker: true,
  throttle: true,
  limits: true,
  jitterMs: true,
  maxPauseMs: true,
  basePauseMs: true,
  maxLanes: true,
  pace: true,
  concurrency: true,
  timeout: true,
  hedge: true,
  retry: true,
  shadow: true,
}
const guardNames = Object.keys(GUARD_OPTIONS) as (keyof typeof GUARD_OPTIONS)[]

const PUBLIC_API: Readonly<Partial<Record<ProtocolName, string>>> = {
  openai: 'https://api.openai.com',
  anthropic: 'https://api.anthropic.com',
  gemini: 'https://generativelanguage.googleapis.com',
}

/** Prefix of request paths; a base URL must not end with it. */
const PATH_PREFIXES: Readonly<Partial<Record<ProtocolName, RegExp>>> = {
  openai: /\/v1$/,
  anthropic: /\/v1$/,
  gemini: /\/v1(alpha|beta)?$/,
  azure: /\/openai(\/v1)?$/,
}

/** From the start of an attempt to the first byte of the vendor's body, unless `timeout.firstByteMs` is set. */
const FIRST_BYTE_MS = 60_000

/** Replaces the library's description, which mentions custom stages: a file cannot have them. */
const SHADOW_TEXT =
  'Stages that only report the calls they would have refused. `true`: all of them. Default: none.'

/** Name of a vendor's only key. */
const ONLY_KEY = 'default'

/** An option that another check reads; listed here so that its name is known. */
function asWritten(schema: JsonSchema | (() => JsonSchema | undefined)): Check<unknown> {
  return optional(described((value: unknown) => value, schema))
}

function guardSchema(name: string): JsonSchema | undefined {
  const { properties } = schemaOf(readGuardOptions) as { properties: Record<string, JsonSchema> }
  const schema = properties[name]
  if (schema === undefined) return undefined
  if (name === 'limits') return withUnits(schema)
  if (name === 'timeout') return timeoutSchema(schema)
  return name === 'shadow' ? { ...schema, description: SHADOW_TEXT } : schema
}

function timeoutSchema(timeout: JsonSchema): JsonSchema {
  const fields = timeout.properties as Record<string, JsonSchema>
  const firstByteMs = {
    ...fields.firstByteMs,
    default: FIRST_BYTE_MS,
    description:
      "Longest time from the start of an attempt to the first byte of the vendor's body.",
  }
  return {
    ...timeout,
    properties: { ...fields, firstByteMs },
    description: 'Timeouts of one attempt. Default: only `firstByteMs`.',
  }
}

export function readVendors(sources: Sources): Check<ReadonlyMap<string, WrittenVendor>> {
  const readOwn = object({
    protocol: about(
      'How requests, models and tokens are read. `azure` is Azure OpenAI, `http` any other service.',
      oneOf('openai', 'anthropic', 'gemini', 'azure', 'http'),
    ),
    url: about(
      'Base URL of the vendor, without the beginning of the API path such as `/v1`. `mock`: the mock vendor. Default: the public API; required for `azure` and `http`.',
      asWritten({ type: 'string' }),
    ),
    key: about('API key: a reference. Default: none is sent.', optional(secret(sources))),
    keys: about(
      'Several API keys by name: references. The first that is not quarantined is used. Default: only `key`.',
      optional(readKeys(sources)),
    ),
    headers: about(
      'Headers of every request to the vendor: text or references. Default: none.',
      optional(readHeaders(sources), {}),
    ),
    quota: about(
      'How the vendor counts tokens: a preset, or an object. Default: by protocol; `reported` for `http` and other addresses of `openai`.',
      optional(readVendorQuota),
    ),
    keyQuarantine: about(
      'A key that the vendor rejects is not used for a while.',
      optional(bool(), true),
    ),
    estimate: about(
      'Tokens to reserve for an answer: `learned` from earlier answers, or `fixed`.',
      optional(oneOf(...ESTIMATE_NAMES), 'learned'),
    ),
    connectMs: about(
      'Longest time until a connection is open.',
      optional(duration({ min: 1 }), 5_000),
    ),
    hops: about(
      'Sends the remaining time and the attempt number, and heeds `spillway-retried`. Default: true for `http`, otherwise false.',
      optional(bool()),
    ),
    models: about(
      'Limits of single models. The first entry that matches replaces `limits`, except those `per: vendor`. Default: none.',
      asWritten(() => modelLimitsSchema('models')),
    ),
    pools: about(
      'Limits that several models share, by name of the pool. Default: none.',
      asWritten(() => modelLimitsSchema('pools')),
    ),
    // Listed so that suggestions contain all option names; the values are read below.
    ...Object.fromEntries(guardNames.map((name) => [name, asWritten(() => guardSchema(name))])),
  })
  return readNamedMap(
    'vendor',
    (value, path, problems: ConfigProblem[], name): WrittenVendor => {
      const own = readOwn(value, path, problems)
      if (own === undefined) {
        return { name, protocol: undefined, keyNames: undefined, config: undefined as never }
      }
      const { protocol, key, keys, headers, connectMs, estimate, hops = protocol === 'http' } = own
      if (key !== undefined && keys !== undefined) {
        const message = 'must not come together with key: put all of them here'
        problems.push({ path: `${path}.keys`, message, at: 'key' })
      }
      const all = keys ?? (key === undefined ? [] : [{ name: ONLY_KEY, secret: key }])
      const url = readUrl(own.url, `${path}.url`, problems, protocol)
      const host = URL.canParse(url) ? new URL(url).hostname : ''
      const { quota, windows } = quotaRules(own.quota, quotaOf(protocol ?? 'http', host))
      const counted = <T>(limits: T) => withLearning(withWindows(limits, windows))
      const guard = readGuard(value as Record<string, unknown>, path, problems, counted)
      checkUnits(guard.limits, `${path}.limits`, problems, protocol)
      const limits = readModelLimits(own, path, problems, protocol)
      const keyNames = all.map((each) => each.name)
      const withLanes = { ...guard, ...guardLanes(limits, keyNames, path, problems, counted) }
      const { keyQuarantine } = own
      const written = { name, protocol, url, keys: all, headers, quota, estimate, connectMs, hops }
      const config = { ...written, ...(keyQuarantine ? {} : { keyQuarantine }), ...limits }
      return {
        name,
        protocol,
        keyNames: keys?.length === 0 ? undefined : keyNames,
        config: { ...config, guard: withLanes },
      }
    },
    () => schemaOf(readOwn),
  )
}

/** Options of the guard are at the same level as those of the vendor. */
function readGuard(
  vendor: Readonly<Record<string, unknown>>,
  path: string,
  problems: ConfigProblem[],
  counted: <T>(limits: T) => T,
): VendorConfig['guard'] {
  const written = guardNames.filter((name) => Object.hasOwn(vendor, name))
  const guard = Object.fromEntries(written.map((name) => [name, vendor[name]]))
  if (typeof guard.shed === 'object' && guard.shed !== null) {
    const shed = { ...guard.shed } as Record<string, unknown>
    for (const name of ['when', 'sensors']) {
      if (!Object.hasOwn(shed, name)) continue
      const message = 'is a function: only a program can have it, not a file'
      problems.push({ path: `${path}.shed.${name}`, message, at: 'key' })
      delete shed[name]
    }
    guard.shed = shed
  }
  if (guard.limits !== undefined) guard.limits = counted(guard.limits)
  checkEndpoints(guard.userLimits, `${path}.userLimits`, problems)
  return withFirstByteTimeout(readGuardOptions(guard, path, problems))
}

/** Requests are counted under their canonical path: a limit in another spelling would never apply. */
function checkEndpoints(userLimits: unknown, path: string, problems: ConfigProblem[]): void {
  if (!Array.isArray(userLimits)) return
  for (const [index, level] of userLimits.entries()) {
    const { per, limit } = (level ?? {}) as { per?: unknown; limit?: unknown }
    if (per !== 'endpoint' || typeof limit !== 'object' || limit === null) continue
    for (const name of Object.keys(limit)) {
      const canonical = canonicalPath(name)
      if (canonical === name) continue
      const message = `must be written as ${canonical}`
      problems.push({ path: `${path}[${index}].limit.${name}`, message, at: 'key' })
    }
  }
}

/** A vendor that accepts requests and never answers would hold slots and connections for ever. */
function withFirstByteTimeout(guard: VendorConfig['guard']): VendorConfig['guard'] {
  return { ...guard, timeout: { firstByteMs: FIRST_BYTE_MS, ...guard.timeout } }
}

function readKeys(sources: Sources): Check<readonly VendorKey[]> {
  const readKey = secret(sources)
  const readAll = readNamedMap(
    'key',
    (value, path, problems, name) => ({
      name,
      secret: readKey(value, path, problems),
    }),
    () => schemaOf(readKey),
  )
  const check: Check<readonly VendorKey[]> = (value, path, problems) => [
    ...readAll(value, path, problems).values(),
  ]
  return describedAs(check, readAll)
}

/** The value is not shown, because a URL may contain a password. */
function readUrl(
  value: unknown,
  path: string,
  problems: OptionProblem[],
  protocol: ProtocolName | undefined,
): string {
  const defaultUrl = protocol && PUBLIC_API[protocol]
  if (value === undefined && defaultUrl !== undefined) return defaultUrl
  const [url, message] = parseUrl(value, protocol)
  if (message !== undefined && !(value === undefined && protocol === undefined)) {
    problems.push({ path, message })
  }
  return url
}

function parseUrl(value: unknown, protocol: ProtocolName | undefined): [string, string?] {
  if (value === 'mock') {
    if (protocol !== 'http') return ['mock']
    return [
      '',
      `must be an http:// or https:// URL: 'mock' speaks the protocols of LLM vendors, not http`,
    ]
  }
  const mock = protocol === 'http' ? '' : `, or 'mock'`
  const expected = `must be an http:// or https:// URL${mock}`
  if (value === undefined) {
    const resource = protocol === 'azure' ? ': that of your resource' : ''
    return ['', `${expected}${resource}, got nothing`]
  }
  if (typeof value !== 'string' || !URL.canParse(value)) return ['', expected]
  const url = new URL(value)
  if (!/^https?:$/.test(url.protocol)) return ['', expected]
  if (url.username !== '' || url.password !== '') {
    return ['', 'must not contain a user or a password: use key, or headers']
  }
  if (/[?#]/.test(value))
    return ['', 'must end with its path, without ? and #: a key belongs in key, or in headers']
  const prefix = url.pathname.replace(/\/+$/, '')
  const [repeated] = (protocol && PATH_PREFIXES[protocol]?.exec(prefix)) ?? []
  if (repeated !== undefined) {
    return ['', `must not end in ${repeated}: the paths of requests begin with it`]
  }
  return [url.origin + prefix]
}
