/** The cases of the table. Each rejects with the reason if the client fails it. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { describeError } from './describe-error.mjs'

const TEXT = '0 1 2'
const END = () => 'ended'
const MODEL = 'suite-model'
/** Only ends a case that hangs. */
const RECOVERS_WITHIN_MS = 30_000

/** `make(knobs, key)` creates a client whose requests have these knobs of the mock vendor. */
export const CASES = {
  plain: { needs: 'plain', run: async (make) => assert.equal(await make().plain(MODEL), TEXT) },
  streamed: {
    needs: 'streamed',
    run: async (make) => assert.equal(await make().streamed(MODEL), TEXT),
  },
  tools: {
    needs: 'tools',
    async run(make) {
      assert.deepEqual(await make().tools(MODEL), { input: { city: 'mock' }, text: TEXT })
    },
  },
  'structured output': {
    needs: 'structured',
    async run(make) {
      assert.deepEqual(await make().structured(MODEL), { city: 'mock', degrees: 1 })
    },
  },
  embeddings: {
    needs: 'embeddings',
    run: async (make) => assert.equal(await make().embeddings('embedding-model'), 1_536),
  },
  responses: {
    needs: 'responses',
    run: async (make) => assert.equal(await make().responses(MODEL), TEXT),
  },
  aborted: {
    needs: 'streamed',
    async run(make) {
      const client = make({ tokens: 10_000, tokenMs: 20 })
      const leave = new AbortController()
      const onText = () => leave.abort()
      const ended = client.streamed(MODEL, { signal: leave.signal, onText }).then(END, END)
      // A stream that is not aborted takes minutes.
      assert.equal(await Promise.race([ended, sleep(10_000, 'still running')]), 'ended')
    },
  },
  'wrong key': {
    needs: 'plain',
    run: (make) => fails(() => make({}, 'wrong-key').plain(MODEL), /401/),
  },
  'user limit': {
    needs: 'plain',
    async run(make) {
      const client = make()
      await failsAtLast(() => client.plain('limited'), /USER_LIMITED/)
      await recovers(() => client.plain('limited'))
    },
  },
  'open breaker': {
    needs: 'plain',
    async run(make) {
      const failing = make({ status: 500 })
      await failsAtLast(() => failing.plain('breaking'), /CIRCUIT_OPEN/)
      await recovers(() => make().plain('breaking'))
    },
  },
  fallback: {
    needs: 'plain',
    run: async (make) => assert.equal(await make().plain('unreachable'), TEXT),
  },
  'cut stream': {
    needs: 'streamed',
    run: (make) =>
      fails(
        () => make({ tokens: 20, cutAfter: 10 }).streamed(MODEL),
        /Spillway gateway: .*ended its answer early/,
      ),
  },
  'stalled stream': {
    needs: 'streamed',
    run: (make) =>
      fails(
        () => make({ tokens: 20, stallAfter: 5 }).streamed(MODEL),
        /Spillway gateway: .*timed out, no data for/,
      ),
  },
}

async function fails(call, expected) {
  let value
  try {
    value = await call()
  } catch (error) {
    const text = describeError(error)
    assert.match(text, expected)
    return
  }
  throw new Error(`no error was reported; the result is ${JSON.stringify(value)}`)
}

/** Calls until an error of this kind is reported. */
async function failsAtLast(call, expected) {
  let last = 'no error'
  for (let round = 0; round < 20; round++) {
    try {
      await call()
    } catch (error) {
      last = describeError(error)
      if (expected.test(last)) return
    }
  }
  throw new Error(`expected ${expected}, got ${last}`)
}

async function recovers(call) {
  const endMs = performance.now() + RECOVERS_WITHIN_MS
  for (;;) {
    try {
      return assert.equal(await call(), TEXT)
    } catch (error) {
      if (performance.now() > endMs) throw error
      await sleep(200)
    }
  }
}
