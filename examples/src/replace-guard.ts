import { createSpillway } from 'spillway'

const spillway = createSpillway()
const limits = [{ limit: 3, windowMs: '1m' }] as const
const timeout = { callMs: '30s' } as const
const queue = { size: 10 }
const old = spillway.guard('openai', { limits, timeout, queue, concurrency: { limit: 1 } })

const slow = old.run(() => new Promise((resolve) => setTimeout(resolve, 50, 'slow')))
const waiting = old.run(() => 'waited')

// Other options, the same shared state: two of three permits are already used.
const openai = spillway.replaceGuard('openai', { limits, timeout, concurrency: { limit: 5 } })
console.log('the old one:', await slow, 'and', await waiting)
console.log('the new one:', await openai.run(() => 'answered'))
await openai.run(() => 'answered').catch(({ code }) => console.log('the new one:', code))

await old.close() // its calls have ended
await spillway.close()
