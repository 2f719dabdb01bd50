import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { createSpillway } from 'spillway'

const spillway = createSpillway()
const story = spillway.guard('story', {
  concurrency: { limit: 10 },
  timeout: { idleMs: '500ms' },
})
const active = () => `slots in use: ${story.snapshot().active}`

/** A vendor that sends one word after each of these waits. */
async function* tell(signal: AbortSignal, ...waitsMs: number[]) {
  for (const [index, waitMs] of waitsMs.entries()) {
    await sleep(waitMs, undefined, { signal })
    yield `word${index + 1} `
  }
}

// An async iterable, such as the stream of an SDK.
const words = await story.run(async ({ signal }) => tell(signal, 1, 1, 1))
console.log(`begun, ${active()}`)
for await (const word of words) process.stdout.write(word)
console.log(`ended, ${active()}`)

// A Node stream: `run` returns the stream itself.
const stream = await story.run(async ({ signal }) => Readable.from(tell(signal, 1, 1)))
for await (const word of stream) process.stdout.write(word)
console.log(`ended, ${active()}`)

// Silence between words.
const slow = await story.run(async ({ signal }) => tell(signal, 1, 2_000))
try {
  for await (const word of slow) process.stdout.write(word)
} catch (error) {
  console.log(`${(error as Error).message}, ${active()}`)
}

await spillway.close()
