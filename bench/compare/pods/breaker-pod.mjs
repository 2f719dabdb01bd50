/** A pod that calls the downstream through a circuit breaker, `perSecond` times a second, until it is stopped. */
import { setInterval } from 'node:timers/promises'

process.once('message', async ({ breaker, redisUrl, pod, url, perSecond, runMs }) => {
  await fetch(`${url}/warm-up`)
  const call = async () => {
    const answer = await fetch(url, { headers: { 'x-pod': pod } })
    await answer.text()
    if (!answer.ok) throw new Error(`status ${answer.status}`)
  }
  const { createBreaker } = await import(`../breakers/${breaker}.mjs`)
  const run = await createBreaker({ call, redisUrl })
  process.once('message', async () => {
    const endMs = performance.now() + runMs
    for await (const _ of setInterval(1_000 / perSecond)) {
      if (performance.now() > endMs) break
      run().catch(() => {})
    }
    process.send({ kind: 'result', result: undefined })
  })
  process.send({ kind: 'ready' })
})
