/** Probes a pod's health from an idle process, like an orchestrator. */
import { setTimeout as sleep } from 'node:timers/promises'

const EVERY_MS = 50
const url = process.argv[2] as string
const tookMs: number[] = []
let failed = 0
let startMs = performance.now()

/** A probe in flight counts with its duration so far. */
process.once('message', () => {
  process.send?.({ tookMs: [...tookMs, performance.now() - startMs], failed })
})
process.once('disconnect', () => process.exit())

while (true) {
  startMs = performance.now()
  try {
    const response = await fetch(`${url}/health/live`, { signal: AbortSignal.timeout(10_000) })
    await response.text()
    if (response.status !== 200) failed++
  } catch {
    failed++
  }
  tookMs.push(performance.now() - startMs)
  await sleep(Math.max(0, EVERY_MS - (performance.now() - startMs)))
}
