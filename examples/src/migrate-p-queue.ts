import { createSpillway } from 'spillway'

const order: string[] = []
const work = async (name: string) => void order.push(name)

const spillway = createSpillway()
const guard = spillway.guard('worker', {
  concurrency: { limit: 1 },
  queue: { size: 1_000, timeoutMs: '30s' },
  timeout: { callMs: '10s' },
})
await Promise.all([guard.run(() => work('a')), guard.run(() => work('b'))])

const first = guard.run(() => work('first'))
const low = guard.run(() => work('low'), { priority: 'low' })
const high = guard.run(() => work('high'), { priority: 'high' })
await Promise.all([first, low, high])
console.log(order.join(' '))
await spillway.close()
