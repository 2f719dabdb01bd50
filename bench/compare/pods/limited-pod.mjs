/** A pod that calls vendors through a limiter, at the given times, and reports how each call ended. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Refused } from '../limiters/refused.mjs'

/**
 * `loads`: for each limit its name, vendor and times, and whether refused calls are repeated after the suggested wait.
 */
process.once('message', async ({ limiter, redis, pod, pods, limit, windowMs, loads, runMs }) => {
  const { createLimiter } = await import(`../limiters/${limiter}.mjs`)
  const calls = []
  for (const { name, vendorUrl } of loads) {
    const work = async () => {
      const answer = await fetch(vendorUrl, { headers: { 'x-pod': pod } })
      await answer.text()
    }
    await fetch(`${vendorUrl}/warm-up`)
    calls.push(await createLimiter({ redis, name, limit, windowMs, pods, work }))
  }
  process.once('message', async () => {
    const startMs = performance.now()
    const ends = loads.map(() => [])
    for (const [index, { times, again }] of loads.entries()) {
      for (const atMs of times) {
        setTimeout(async () => {
          const begunMs = performance.now()
          const end = { atMs: begunMs - startMs, result: 'waiting' }
          ends[index].push(end)
          end.result = await callUntilAnswered(calls[index], again)
          end.tookMs = performance.now() - begunMs
        }, atMs)
      }
    }
    await sleep(runMs)
    const leftMs = performance.now() - startMs
    for (const end of ends.flat()) end.tookMs ??= leftMs - end.atMs
    process.send({ kind: 'result', result: ends })
  })
  process.send({ kind: 'ready' })
})

async function callUntilAnswered(call, again) {
  for (;;) {
    try {
      await call()
      return 'answered'
    } catch (error) {
      if (!(error instanceof Refused)) return 'failed'
      if (!again) return 'refused'
      await sleep(error.retryAfterMs ?? 1_000)
    }
  }
}
