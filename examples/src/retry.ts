import { attemptsOf, createRetry } from 'spillway/local'

class VendorError extends Error {
  constructor(readonly status: number) {
    super(`vendor says ${status}`)
  }
}

/** Answers with each status in turn. */
function vendor(...statuses: number[]) {
  return () => {
    const status = statuses.shift() ?? 200
    if (status !== 200) throw new VendorError(status)
    return 'done'
  }
}

const retry = createRetry({ name: 'vendor', attempts: 3, baseMs: 5 })

// A short failure: the third attempt succeeds.
console.log(await retry.run(vendor(503, 502, 200)))

// Every attempt fails: the function's last error comes out unchanged, with the number of attempts.
try {
  await retry.run(vendor(503, 503, 503))
} catch (error) {
  console.log(`${error}, after ${attemptsOf(error).length} attempts`)
}

// A retry does not help an invalid request: one attempt.
try {
  await retry.run(vendor(404))
} catch (error) {
  console.log(`${error}, after ${attemptsOf(error).length} attempt`)
}

// The same without throwing.
const result = await retry.tryRun(vendor(429, 200))
for (const { attempt, outcome } of result.attempts) console.log(`attempt ${attempt}: ${outcome}`)
console.log(result.ok ? result.value : result.error)
