/** The gateway's configuration for the suite: a vendor for each situation, chosen by the model of a request. */
import { CLIENTS } from './clients/all.mjs'
import { FAILURES } from './failures.mjs'

const PROTOCOLS = ['openai', 'anthropic']
export const WINDOW_MS = 10_000
/** Model → options of its guard. */
const SITUATIONS = {
  limited: { userLimits: [{ per: 'user', limit: 2, windowMs: '3s' }] },
  refusing: {
    userLimits: [{ per: 'user', limit: 2, windowMs: WINDOW_MS, algorithm: 'sliding-window' }],
  },
  breaking: { breaker: { consecutiveFailures: 3, openMs: '1s' } },
  retried: { retry: { attempts: 3, budget: 1, baseMs: 1 } },
  // Nothing listens there, so the fallback answers.
  unreachable: { url: 'http://127.0.0.1:9' },
}
const COMMON = { url: 'mock', timeout: { firstByteMs: '5s', idleMs: '1s' } }

/** One caller for the cases of a client, and one for each failure whose retries are counted. */
function callers() {
  return CLIENTS.flatMap((_, index) => [
    `suite-${index}`,
    ...Object.keys(FAILURES).map((name) => retryUser(index, name)),
  ])
}

export function retryUser(index, failure) {
  return `retries-${index}-${Object.keys(FAILURES).indexOf(failure)}`
}

export function gatewayConfig() {
  const vendors = {}
  const routes = []
  for (const protocol of PROTOCOLS) {
    vendors[protocol] = { protocol, ...COMMON }
    for (const [model, guard] of Object.entries(SITUATIONS)) {
      const vendor = `${protocol}-${model}`
      vendors[vendor] = { protocol, ...COMMON, ...guard }
      const fallbacks = model === 'unreachable' ? [{ vendor: protocol }] : undefined
      routes.push({ name: vendor, vendor, models: [model], ...(fallbacks && { fallbacks }) })
    }
    routes.push({ name: protocol, vendor: protocol })
  }
  const keys = callers().map((user) => ({ key: `env:${envName(user)}`, user }))
  return { host: '127.0.0.1', vendors, routes, callers: keys }
}

export function callerKeys() {
  return Object.fromEntries(callers().map((user) => [envName(user), keyOf(user)]))
}

export function keyOf(user) {
  return `key-of-${user}-for-the-suite`
}

function envName(user) {
  return `SUITE_KEY_${user.toUpperCase().replaceAll('-', '_')}`
}
