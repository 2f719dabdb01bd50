import { createSpillway } from 'spillway'
import { createRandom, createVirtualClock, sleep } from 'spillway/testing'

const clock = createVirtualClock()
const random = createRandom(1)
const spillway = createSpillway({ clock, random })

/** 50 ms, and for two in a hundred a whole second. */
async function callVendor(signal: AbortSignal) {
  const usualMs = 40 + 20 * random()
  await sleep(clock, random() < 0.02 ? 20 * usualMs : usualMs, signal)
}

for (const hedge of [undefined, {}]) {
  const name = hedge === undefined ? 'without' : 'with'
  const guard = spillway.guard(name, {
    timeout: { callMs: '30s' },
    concurrency: { limit: 100 },
    ...(hedge && { hedge }),
  })
  const tookMs: number[] = []
  for (let call = 0; call < 2_000; call++) {
    const startMs = clock.now()
    void guard
      .run(({ signal }) => callVendor(signal))
      .then(() => tookMs.push(clock.now() - startMs))
    await clock.advance(10)
  }
  await clock.advance(2_000)
  tookMs.sort((a, b) => a - b)
  const { attempts, calls } = guard.snapshot()
  const slow = tookMs.filter((ms) => ms > 500).length
  const extra = `${((attempts / calls - 1) * 100).toFixed(0)} % more attempts`
  console.log(`${name} a hedge: ${slow} of ${calls} took over half a second, ${extra}`)
}
await clock.until(spillway.close())
