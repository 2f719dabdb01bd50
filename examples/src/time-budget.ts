import { createTimeBudget } from 'spillway'
import { createVirtualClock } from 'spillway/testing'

const clock = createVirtualClock()

/** Does nothing for this long; real code would run its step under the deadline. */
const work = (tookMs: number) => clock.advance(tookMs)

// One second for the whole request, cut by weight: 1 part, 3 parts, 6 parts.
const budget = createTimeBudget({ totalMs: '1s', steps: { auth: 1, search: 3, answer: 6 }, clock })

console.log(`auth gets ${budget.step('auth').remainingMs()} ms`)
await work(10)

// The 90 ms that auth left are divided between the other two.
console.log(`search gets ${budget.step('search').remainingMs()} ms`)
await work(600)

// Search took twice its share. The last step gets the remaining time, so the total holds.
console.log(`answer gets ${budget.step('answer').remainingMs()} ms`)
