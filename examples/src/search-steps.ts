import { createSpillway, otherGuard, reduced, staleCache, staticValue } from 'spillway'
import { createVirtualClock } from 'spillway/testing'

const clock = createVirtualClock() // minutes in no time; leave it out in production
const spillway = createSpillway({ clock })
const down = new Set<string>()

/** A dependency of the search. */
const dependency = (name: string, answer: string) => async () => {
  if (down.has(name)) throw new Error(`${name} is down`)
  return answer
}
const personal = dependency('search', 'results for you')
const trending = dependency('trending', 'popular searches')
const fromDisk = dependency('disk', 'the catalogue of last night')

const breaker = { consecutiveFailures: 3, openMs: '10s', successes: 1 } as const
const timeout = { callMs: '30s' } as const
const popular = spillway.guard('popular', { breaker, timeout })
const search = spillway.guard('search', {
  breaker,
  timeout,
  fallback: [
    staleCache({ name: 'cached', maxAgeMs: '5m', clock }),
    otherGuard(popular, trending, { name: 'popular' }),
    reduced(fromDisk, { name: 'static', clock }),
    staticValue('search is temporarily unavailable', { name: 'maintenance' }),
  ],
})

async function show(what: string): Promise<void> {
  const {
    value,
    step = 'full',
    reason = '',
  } = await search.runDegradable(personal, {
    cacheKey: 'kettles',
  })
  console.log(`${what.padEnd(24)} ${step.padEnd(12)} ${value} ${reason && `(${reason})`}`.trimEnd())
}

await show('all well')
down.add('search')
await show('search fails')
await clock.advance(6 * 60_000)
await show('six minutes later')
down.add('trending')
await show('trending fails, too')
down.add('disk')
await show('and the disk')
down.clear()
await clock.advance(10_000)
await show('everything is back')

await spillway.close()
