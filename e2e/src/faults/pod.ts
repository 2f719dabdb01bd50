/**
 * A pod of the fleet: calls the vendor as often as its guard allows and reports the results to its parent.
 * `process.argv`: the store's port, the vendor's port, a name, limit, window.
 */
import dns from 'node:dns'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createSpillway, onEvent, SpillwayError } from 'spillway'
import { redisStore } from 'spillway/redis'
import type { FromPod, PodReport, ToPod } from './messages.js'
import { callNow } from './vendor.js'

const [storePort, vendorPort, name, limit, windowMs] = process.argv.slice(2)
const CALLERS = 6
const HOST = 'store.test'

const toParent = (message: FromPod) => process.send?.(message)
/** Timer delay of this process. On a busy machine every wait is longer by this time. */
let tickMs = performance.now()
setInterval(() => {
  const nowMs = performance.now()
  report.stallMs = Math.max(report.stallMs, nowMs - tickMs - 5)
  tickMs = nowMs
}, 5)
const report: PodReport = {
  calls: 0,
  longestWaitMs: 0,
  stallMs: 0,
  unhandled: 0,
  falseRefusals: 0,
  refused: 0,
}
process.on('unhandledRejection', () => {
  report.unhandled++
})

/** Resolves the name of the store, unless failing DNS is the fault. */
let nameIsKnown = true
const lookup = dns.lookup
Object.assign(dns, {
  lookup(host: string, ...rest: unknown[]) {
    const done = rest.at(-1) as (error: Error | null, address?: unknown, family?: number) => void
    if (host !== HOST) return Reflect.apply(lookup, dns, [host, ...rest])
    const all = (rest[0] as { all?: boolean } | undefined)?.all === true
    const error = Object.assign(new Error(`getaddrinfo ENOTFOUND ${HOST}`), { code: 'ENOTFOUND' })
    process.nextTick(() => {
      if (!nameIsKnown) return done(error)
      if (all) done(null, [{ address: '127.0.0.1', family: 4 }])
      else done(null, '127.0.0.1', 4)
    })
  },
})

const store = redisStore({ url: `redis://${HOST}:${storePort}` })
const spillway = createSpillway({ store, pod: String(name), expectedPods: 4 })
const guard = spillway.guard('vendor', {
  limits: [{ limit: Number(limit), windowMs: Number(windowMs) }],
  breaker: { failureRate: 0.5, openMs: '2s' },
  userLimits: [{ per: 'user', limit: 1_000_000, windowMs: '1s' }],
})
const statusOf = () => guard.snapshot().store?.status ?? 'starting'
let lastStatus = ''
const sendStatus = () => {
  const status = statusOf()
  if (status !== lastStatus) toParent({ kind: 'status', status })
  lastStatus = status
}
onEvent(({ type }) => {
  if (type.startsWith('store.')) setImmediate(sendStatus)
})
guard.breaker?.onChange(({ lane, to }) => toParent({ kind: 'breaker', lane, to }))

async function callOnce(vendor: ReturnType<typeof connect>): Promise<void> {
  const startMs = performance.now()
  const waited = () => {
    report.longestWaitMs = Math.max(report.longestWaitMs, performance.now() - startMs)
  }
  try {
    await guard.run(
      async () => {
        waited()
        vendor.write(callNow())
        await once(vendor, 'data')
        report.calls++
      },
      { user: String(name) },
    )
  } catch (error) {
    waited()
    report.refused++
    if (!(error instanceof SpillwayError)) throw error
    // A shared 429 without a reply of the store, or an outage passed on to the caller.
    const { code, scope, details } = error
    const byOutageRule = details.byOutageRule === true
    const blamesFleet =
      code === 'VENDOR_LIMITED' && byOutageRule && scope !== 'local' && !details.paused
    if (code === 'STORE_UNAVAILABLE' || code === 'USER_LIMITED' || blamesFleet) {
      report.falseRefusals++
    }
    await sleep(10 + Math.random() * 20)
  }
}

async function keepCalling(): Promise<void> {
  const vendor = connect({ port: Number(vendorPort), host: '127.0.0.1', noDelay: true })
  await once(vendor, 'connect')
  for (;;) await callOnce(vendor)
}

process.on('message', (message: ToPod) => {
  if (message === 'dns-gone') nameIsKnown = false
  if (message === 'dns-back') nameIsKnown = true
  if (message === 'reset') Object.assign(report, { longestWaitMs: 0, stallMs: 0 })
  if (message === 'trip') void guard.breaker?.trip({ lane: 'check' }).catch(() => {})
  if (message === 'report') toParent({ kind: 'report', report })
})
process.on('disconnect', () => process.exit())

while (statusOf() === 'starting') await sleep(10)
sendStatus()
for (let caller = 0; caller < CALLERS; caller++) void keepCalling()
