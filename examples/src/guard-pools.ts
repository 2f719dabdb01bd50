import { createSpillway } from 'spillway'
import { createVirtualClock } from 'spillway/testing'

const clock = createVirtualClock()
const spillway = createSpillway({ clock })

const vendor = spillway.guard('vendor', {
  timeout: { callMs: '30s' },
  limits: [{ unit: 'requests', limit: 50, windowMs: '1m' }],
  lanes: [
    { match: 'gpt-4o-mini*', limits: [{ unit: 'requests', limit: 20, windowMs: '1m' }] },
    { match: 'claude-opus-4-*', pool: 'opus' },
  ],
  pools: { opus: { limits: [{ unit: 'requests', limit: 10, windowMs: '1m' }] } },
})

/** How many of 30 calls start. */
async function started(lane: string): Promise<number> {
  const calls = Array.from({ length: 30 }, () => vendor.run(() => 'an answer', { lane }))
  const ended = await clock.until(Promise.allSettled(calls))
  return ended.filter(({ status }) => status === 'fulfilled').length
}

for (const lane of ['gpt-4o', 'gpt-4o-mini', 'claude-opus-4-1', 'claude-opus-4-5']) {
  console.log(`${lane}: ${await started(lane)} of 30`)
}

await spillway.close()
