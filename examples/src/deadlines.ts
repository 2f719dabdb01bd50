import { setTimeout as sleep } from 'node:timers/promises'
import { createDeadline, currentDeadline, runWithDeadline, SpillwayError } from 'spillway'
import { createTimeout } from 'spillway/local'

const database = createTimeout({ name: 'database', callMs: '10s' })

/** Uses the deadline of the context without naming it. */
async function loadUser(id: string, tookMs: number) {
  await sleep(10)
  return database.run(({ signal }) => sleep(tookMs, `user ${id}`, { signal }))
}

/** One request with this much time, of which 20 ms are for rendering the answer. */
function handle(id: string, timeoutMs: number, tookMs: number) {
  const deadline = createDeadline(timeoutMs)
  return runWithDeadline(deadline.withReserve(20), () => loadUser(id, tookMs)).catch((error) => {
    if (error instanceof SpillwayError) return `${id}: ${error.code}`
    throw error
  })
}

// Both run at the same time, each with its own deadline.
console.log(await Promise.all([handle('anna', 5_000, 150), handle('ben', 100, 150)]))

// The earlier of two deadlines applies: inner code cannot extend it.
runWithDeadline(createDeadline(100), () => {
  runWithDeadline(createDeadline('1m'), () => {
    console.log(`100 ms at most: ${(currentDeadline()?.remainingMs() ?? 0) <= 100}`)
  })
})
console.log(`outside of a request: ${currentDeadline()}`)
