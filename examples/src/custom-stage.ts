import { createSpillway, customStage, SpillwayError } from 'spillway'
import { createVirtualClock } from 'spillway/testing'

const clock = createVirtualClock()
const spillway = createSpillway({ clock })

// A maintenance window. The application refreshes it in the background.
let windowEndsMs = 0
const maintenance = customStage({
  name: 'maintenance',
  after: 'shed',
  check() {
    const leftMs = windowEndsMs - clock.now()
    if (leftMs <= 0) return undefined
    return { refuse: 'maintenance', retryAfterMs: leftMs, details: { leftMs } }
  },
  snapshot: () => ({ windowEndsMs }),
})

// A kill switch for single tenants. A job brings its tenant along, a call its user.
const switchedOff = new Set<string>()
const killSwitch = customStage({
  name: 'kill-switch',
  after: 'maintenance',
  scope: 'shared',
  check({ user, tenant }) {
    const who = tenant ?? user
    if (who === undefined || !switchedOff.has(who)) return undefined
    return { refuse: `${who} is switched off`, status: 403 }
  },
  onError: 'refuse',
})

// At most two exports at the same time, in addition to other calls.
let exporting = 0
const exports = customStage<boolean>({
  name: 'exports',
  after: 'concurrency',
  acquire({ endpoint }) {
    if (endpoint !== 'export') return false
    if (exporting === 2) return { refuse: 'two exports run already', retryAfterMs: 1_000 }
    exporting++
    return true
  },
  release(counted) {
    if (counted) exporting--
  },
})

const crm = spillway.guard('crm', {
  timeout: { callMs: '30s' },
  concurrency: { limit: 10 },
  stages: [maintenance, killSwitch, exports],
})

async function call(user: string, endpoint = 'read') {
  try {
    await crm.run(() => clock.advance(0), { user, endpoint })
    console.log(`${user} ${endpoint}: answered`)
  } catch (error) {
    if (!(error instanceof SpillwayError)) throw error
    const { code, stage, status, retryAfterMs } = error
    const retry = retryAfterMs === undefined ? '' : `, retry in ${retryAfterMs} ms`
    console.log(`${user} ${endpoint}: ${code} by ${stage}, status ${status}${retry}`)
  }
}

await call('ann')
switchedOff.add('acme')
await call('acme')
await call('ann')
await Promise.all([call('ann', 'export'), call('ben', 'export'), call('cleo', 'export')])
windowEndsMs = clock.now() + 60_000
await call('ann')
console.log(
  crm
    .snapshot()
    .stages.map(({ name }) => name)
    .join(' → '),
)
console.log(crm.snapshot().refused)

await spillway.close()
