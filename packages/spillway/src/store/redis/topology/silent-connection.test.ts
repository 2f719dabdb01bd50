import { describe, expect, it } from 'vitest'
import { createVirtualClock } from '../../../testing/virtual-clock.js'
import type { Connection } from '../drivers/driver.js'
import { Redial } from './redial.js'
import { createSilentConnectionCheck } from './silent-connection.js'

async function setup() {
  const clock = createVirtualClock()
  const server = { alive: true, pings: 0, dials: 0 }
  const client: Connection = {
    ready: true,
    send: async () => 'OK',
    subscribe: async () => {},
    ping() {
      server.pings++
      return server.alive ? Promise.resolve('PONG') : new Promise(() => {})
    },
  }
  const redial = new Redial<Connection>({
    clock,
    random: () => 1,
    dial() {
      server.dials++
      return { client: { ...client }, open: async () => {}, drop() {} }
    },
  })
  await clock.settle()
  return { clock, server, checkAlive: createSilentConnectionCheck(redial, clock) }
}

describe('checking a silent connection', () => {
  it('a connection without a sign of life for two seconds is replaced', async () => {
    const { clock, server, checkAlive } = await setup()
    server.alive = false
    for (let ms = 0; ms < 1_900; ms += 100) {
      checkAlive()
      await clock.advance(100)
    }
    expect([server.pings, server.dials]).toEqual([1, 1])
    await clock.advance(200)
    expect(server.dials).toBe(2)
  })

  it('a connection to a slow but responsive server is kept', async () => {
    const { clock, server, checkAlive } = await setup()
    for (let ms = 0; ms < 10_000; ms += 500) {
      checkAlive()
      await clock.advance(500)
    }
    expect([server.pings, server.dials]).toEqual([20, 1])
    expect(clock.pending).toBe(0)
  })
})
