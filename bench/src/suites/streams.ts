/**
 * Cost of a guard with all stages for streamed responses: bytes per second, and time to the first byte. Both sides
 * use Node's fetch with one server in its own process.
 */
import type { Guard } from 'spillway'
import { ALL_STAGES, callOptions, openGuard } from '../all-stages.js'
import { type BodyServer, startBodyServer } from '../body-server.js'
import { type Comparison, type Figure, median, type Preparation, type Suite } from '../measure.js'

type Fetch = typeof fetch

const FIRST_BYTE_MS = 10_000
const IDLE_MS = 5_000

/** Many short turns, so that other load of the machine affects both sides equally. */
const SIZES = {
  '100kB': { bytes: 100_000, times: 50 },
  '10MB': { bytes: 10_000_000, times: 1 },
} as const

type Size = keyof typeof SIZES

/** Thousands of requests are needed before all code is optimised, on either side. */
const ROUNDS = { warmUp: 100, counted: 124 }

/** All stream timeouts are armed, and each request has a user and tokens. */
function openFetch(preparation: Preparation): Guard['fetch'] {
  const timeout = { ...ALL_STAGES.timeout, firstByteMs: FIRST_BYTE_MS, idleMs: IDLE_MS }
  const options = { timeout, fetch: { describe: callOptions } }
  return openGuard(preparation, { options }).fetch
}

async function openServer({ atEnd }: Preparation): Promise<BodyServer> {
  const server = await startBodyServer()
  atEnd(() => server.stop())
  return server
}

/** Reads chunk by chunk, like a proxy. */
async function read(response: Response): Promise<number> {
  const reader = response.body!.getReader()
  let bytes = 0
  while (true) {
    const { done, value } = await reader.read()
    if (done) return bytes
    bytes += value.length
  }
}

/** Reads bodies one after the other. Result in kilobytes per second. */
function readEach(send: Fetch, { url }: BodyServer, size: Size) {
  const { bytes, times } = SIZES[size]
  return async () => {
    const startMs = performance.now()
    let done = 0
    for (let i = 0; i < times; i++) done += await read(await send(`${url}/${bytes}`))
    const elapsedMs = performance.now() - startMs
    if (done !== bytes * times) throw new Error(`${done} of ${bytes * times} bytes arrived`)
    return done / elapsedMs
  }
}

const THROUGHPUT = 'stream-throughput-vs-bare'

function throughput(name: string, what: string, sizes: readonly Size[]): Comparison {
  return {
    name,
    what,
    target: 0.8,
    peerName: `fetch of Node ${process.versions.node}`,
    unit: 'kB/s',
    rounds: ROUNDS,
    async prepare(preparation) {
      const server = await openServer(preparation)
      const guarded = openFetch(preparation)
      return sizes.map((size) => ({
        ours: readEach(guarded, server, size),
        peer: readEach(fetch, server, size),
      }))
    },
  }
}

const PAIRS = 25

async function firstByteMs(send: Fetch, url: string): Promise<number> {
  const startMs = performance.now()
  const { body } = await send(url)
  const reader = body!.getReader()
  await reader.read()
  const tookMs = performance.now() - startMs
  while (!(await reader.read()).done);
  return tookMs
}

const firstByteAdded: Figure = {
  name: 'first-byte-added-us',
  what: 'additional time to the first byte of an answer, compared with fetch alone',
  unit: 'µs',
  rounds: ROUNDS,
  async prepare(preparation) {
    const { url } = await openServer(preparation)
    const guarded = openFetch(preparation)
    const answer = `${url}/1000`
    return async () => {
      const [ours, bare]: [number[], number[]] = [[], []]
      for (let i = 0; i < PAIRS; i++) {
        ours.push(await firstByteMs(guarded, answer))
        bare.push(await firstByteMs(fetch, answer))
      }
      return (median(ours) - median(bare)) * 1_000
    }
  },
}

export const streams: Suite = {
  name: 'streams',
  what: 'cost of nine stages per streamed answer, compared with fetch alone',
  benches: [
    throughput(THROUGHPUT, 'bytes through guard.fetch, worse of the two sizes', ['100kB', '10MB']),
    throughput(`${THROUGHPUT}-100kB`, 'bodies of 100 kB, one after the other', ['100kB']),
    throughput(`${THROUGHPUT}-10MB`, 'bodies of 10 MB, one after the other', ['10MB']),
    firstByteAdded,
  ],
}
