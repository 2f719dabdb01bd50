/**
 * For axios 1.12 and later: `axios.create({ ...spillwayAxios(axios, guard) })`. Axios prepares the request and reads
 * the answer, and its adapter for `fetch` sends the request through the guard.
 */
import type {
  AxiosAdapter,
  AxiosError,
  AxiosRequestConfig,
  AxiosStatic,
  InternalAxiosRequestConfig,
} from 'axios'
import { OptionsError } from '../../core/options/checks.js'
import type { Guard } from '../guard.js'
import { checkRunOptions } from '../pipeline/start-call.js'
import type { RunOptions } from '../run-options.js'
import type { Fetch } from './fetch.js'

declare module 'axios' {
  interface AxiosRequestConfig {
    /** Options of this call, such as `lane`, `user` or `priority`. Default: those of `spillwayAxios()`. */
    spillway?: RunOptions
  }
}

/** What `spillwayAxios()` returns: options for `axios.create()`. */
export interface AxiosSettings {
  /** Sends requests through the guard. */
  adapter: AxiosAdapter
}

/** Options that only the adapter for node:http has. Ignoring them could send a request past a proxy. */
const ONLY_NODE_HTTP = ['httpAgent', 'httpsAgent', 'proxy', 'socketPath', 'transport'] as const

/** `fetch` has no field for these options, so they are passed as an additional one. */
type SpillwayInit = RequestInit & { spillway?: RunOptions }

/**
 * Creates options for `axios.create()` that send every request through the guard. A refusal rejects with an
 * `AxiosError` whose `code` and `status` are those of the refusal; `refusalOf(error)` returns the refusal itself.
 *
 * @example
 * const client = axios.create({ baseURL, ...spillwayAxios(axios, guard) })
 * const { data } = await client.get('/items', { spillway: { priority: 'high' } })
 */
export function spillwayAxios(
  axios: Pick<AxiosStatic, 'getAdapter'>,
  guard: Pick<Guard, 'fetchFor'>,
  options: RunOptions = {},
): AxiosSettings {
  checkRunOptions(options)
  const send: Fetch = (input, init) => {
    const { spillway, ...rest } = (init ?? {}) as SpillwayInit
    return guard.fetchFor({ ...options, ...spillway })(input, rest)
  }
  // One function for all requests, because axios caches an adapter per `fetch` function and never drops it. Without
  // `Request` axios passes the body itself, which can be sent again.
  const env = { fetch: send, Request: null } as unknown as NonNullable<AxiosRequestConfig['env']>
  const adapter: AxiosAdapter = async (config) => {
    const problems = ONLY_NODE_HTTP.filter((name) => Boolean(config[name]))
    if (problems.length > 0) throw new OptionsError(problems.map(notSupported))
    const { spillway, timeout = 0 } = config
    const call: RunOptions = timeout > 0 ? { timeoutMs: timeout, ...spillway } : { ...spillway }
    const prepared = {
      ...config,
      env,
      // The guard ends the call instead, and a retry never starts without time left.
      timeout: 0,
      fetchOptions: { ...config.fetchOptions, spillway: call },
    } as InternalAxiosRequestConfig
    // The error refers to the application's request, which it may send again.
    try {
      const response = await axios.getAdapter('fetch', prepared)(prepared)
      return { ...response, config }
    } catch (error) {
      if (isAxiosError(error)) error.config = config
      throw error
    }
  }
  return { adapter }
}

function isAxiosError(error: unknown): error is AxiosError {
  return error instanceof Error && 'isAxiosError' in error
}

function notSupported(name: string) {
  const message =
    'is an option for node:http, and a guarded client uses fetch; for proxies, agents and sockets set ' +
    "fetch.fetch of the guard to undici's fetch with a dispatcher"
  return { path: `axios.${name}`, message }
}
