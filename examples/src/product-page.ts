import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createSpillway, reduced, staleCache, staticValue } from 'spillway'
import type { Degradable } from 'spillway/degrade'

/** A service that can be killed, and comes back on the same port. */
async function startService(answer: unknown) {
  const server = createServer((_, response) => response.end(JSON.stringify(answer)))
  const listen = async (port: number) => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  await listen(0)
  const { port } = server.address() as AddressInfo
  const kill = async () => {
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
  const get = async (signal: AbortSignal) =>
    (await fetch(`http://127.0.0.1:${port}`, { signal })).json()
  return { kill, revive: () => listen(port), get }
}

const services = {
  product: await startService({ name: 'Kettle', price: 49 }),
  recommendations: await startService(['Toaster', 'Teapot']),
  views: await startService(1_204),
}

const spillway = createSpillway()
const PROTECTED = {
  timeout: { callMs: '10s' },
  breaker: { consecutiveFailures: 2, openMs: '1s', successes: 1 },
} as const
const guards = {
  // The main content: an answer that is an hour old is better than none.
  product: spillway.guard('product', { ...PROTECTED, fallback: [staleCache({ maxAgeMs: '1h' })] }),
  // Optional: popular products are good enough.
  recommendations: spillway.guard('recommendations', {
    ...PROTECTED,
    fallback: [reduced(() => ['Bestseller'], { name: 'popular' })],
  }),
  // Not needed at all.
  views: spillway.guard('views', { ...PROTECTED, fallback: [staticValue(null)] }),
}

type Part = keyof typeof guards

async function page(): Promise<string> {
  const ask = (part: Part): Promise<Degradable<unknown>> =>
    guards[part].runDegradable(({ signal }) => services[part].get(signal), { cacheKey: 'kettle' })
  const parts = {
    product: ask('product'),
    recommendations: ask('recommendations'),
    views: ask('views'),
  }
  const values: unknown[] = []
  const degraded: string[] = []
  for (const [part, asked] of Object.entries(parts)) {
    const { value, reason, step } = await asked
    values.push(value)
    if (reason !== undefined) degraded.push(`${part}: ${reason}, ${step}`)
  }
  return `${JSON.stringify(values)} degraded: ${degraded.join(', ') || 'nothing'}`
}

console.log('all up         ', await page())
for (const part of Object.keys(services) as Part[]) {
  await services[part].kill()
  console.log(`\nwithout ${part}`)
  for (const time of ['first call     ', 'second         ', 'third          ']) {
    console.log(time, await page())
  }
  await services[part].revive()
  let text = await page()
  for (; !text.endsWith('nothing'); text = await page()) await sleep(50)
  console.log('back by itself ', text)
}

await spillway.close()
for (const { kill } of Object.values(services)) await kill()
