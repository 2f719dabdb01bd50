import { it } from 'vitest'
import { createFleet, drawHealthy } from './breaker-simulation.js'
it('figures', async () => {
  const n = Number(process.env.RUNS ?? 100), from = Number(process.env.FROM ?? 1)
  let opened = 0
  const t0 = performance.now()
  for (let seed = from; seed < from + n; seed++) {
    const run = drawHealthy(seed)
    const fleet = createFleet(run)
    const ms = Math.max(2_000, 2.5 * run.successMs)
    await fleet.call(run.idleFirst ? Math.min(ms, 5_000) : ms)
    if (run.idleFirst && fleet.openedMs() === undefined) { await fleet.idle(60_000); await fleet.call(ms) }
    if (fleet.openedMs() !== undefined) { opened++; console.log(seed, fleet.openedMs(), fleet.failures(), JSON.stringify(run)) }
    await fleet.close()
  }
  console.log(`opened ${opened} of ${n} in ${Math.round(performance.now() - t0)} ms`)
}, 3_600_000)
