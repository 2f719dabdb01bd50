import { setTimeout as sleep } from 'node:timers/promises'
import { SpillwayError } from 'spillway'
import { createTimeout } from 'spillway/local'

// However long the answer: the first word within 200 ms, then one at least every 50 ms.
const timeout = createTimeout({ name: 'story', firstByteMs: 200, idleMs: 50 })

/** A vendor that sends one word after each of these waits. */
async function* tell(waitsMs: number[], signal: AbortSignal) {
  for (const [index, waitMs] of waitsMs.entries()) {
    await sleep(waitMs, undefined, { signal })
    yield `word${index + 1}`
  }
}

async function listen(waitsMs: number[]) {
  const heard: string[] = []
  try {
    await timeout.run(async ({ signal, progress }) => {
      for await (const word of tell(waitsMs, signal)) {
        progress()
        heard.push(word)
      }
    })
    console.log(heard.join(' '))
  } catch (error) {
    if (!(error instanceof SpillwayError)) throw error
    console.log([...heard, `${error.code}: ${error.message}`].join(' '))
  }
}

await listen([100, 10, 10, 10])
await listen([400])
await listen([10, 10, 400, 10])
