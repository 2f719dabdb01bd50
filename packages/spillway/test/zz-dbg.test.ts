import { it } from 'vitest'
import { createFleet, drawHealthy } from './breaker-simulation.js'
it('figures', async () => {
  for (const seed of [37,73]) {
    const run = drawHealthy(seed)
    const fleet = createFleet(run)
    const ms = Math.max(2_000, 2.5 * run.successMs)
    await fleet.call(run.idleFirst ? Math.min(ms, 5_000) : ms)
    if (run.idleFirst && fleet.openedMs() === undefined) { await fleet.idle(60_000); await fleet.call(ms) }
    console.log(seed, fleet.openedMs(), fleet.failures(), JSON.stringify(fleet.snapshots()))
    await fleet.close()
  }
}, 3_600_000)
