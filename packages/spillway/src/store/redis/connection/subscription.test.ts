import { describe, expect, it } from 'vitest'
import { createVirtualClock } from '../../../testing/virtual-clock.js'
import { type Listener, openSubscription } from './subscription.js'

/** A server that answers pings while it is alive. */
function setup() {
  const clock = createVirtualClock()
  const messages: string[] = []
  const lines: { say(text: string): void; dropped: boolean; lost(problem: unknown): void }[] = []
  const server = { alive: true, refuses: false }
  const dial = (lost: (problem: unknown) => void) => {
    let deliver: (text: string) => void = () => {}
    const client: Listener = {
      async subscribe(_, hearing) {
        if (server.refuses) throw new Error('NOPERM')
        deliver = hearing
      },
      ping: () => (server.alive ? Promise.resolve('PONG') : new Promise(() => {})),
    }
    const dialed = {
      client,
      open: async () => {},
      drop() {
        dialed.dropped = true
      },
      dropped: false,
      say: (text: string) => deliver(text),
      lost,
    }
    lines.push(dialed)
    return dialed
  }
  const listener = {
    onMessage: (text: string) => messages.push(text),
    onSubscribed: () => messages.push('subscribed'),
  }
  const subscription = openSubscription({ dial, clock, random: () => 1 }, 'channel', listener)
  return { clock, messages, lines, server, subscription }
}

describe('Redis subscription', () => {
  it('subscription reports that it is established and passes messages on', async () => {
    const { clock, messages, lines } = setup()
    await clock.settle()
    lines[0]?.say('one')
    expect(messages).toEqual(['subscribed', 'one'])
  })

  it('subscription reports each reconnect, because messages may have been missed', async () => {
    const { clock, messages, lines } = setup()
    await clock.settle()
    lines[0]?.lost(new Error('reset'))
    lines[0]?.say('an echo')
    await clock.advance(100)
    expect(messages).toEqual(['subscribed', 'subscribed'])
  })

  it('subscription replaces a connection on which the server is silent', async () => {
    const { clock, messages, lines, server } = setup()
    await clock.advance(60_000)
    expect(lines).toHaveLength(1)
    server.alive = false
    await clock.advance(10_000)
    expect(lines[0]?.dropped).toBe(true)
    await clock.advance(100)
    expect(messages).toEqual(['subscribed', 'subscribed'])
  })

  it('subscription retries ever more slowly while SUBSCRIBE is refused', async () => {
    const { clock, messages, lines, server } = setup()
    server.refuses = true
    await clock.advance(60_000)
    expect(lines.length).toBeLessThan(75)
    server.refuses = false
    await clock.advance(2_000)
    expect(messages).toEqual(['subscribed'])
  })

  it('subscription never keeps the process alive and is silent after close()', async () => {
    const { clock, messages, lines, subscription } = setup()
    await clock.settle()
    expect(clock.pending).toBe(0)
    subscription.close()
    lines[0]?.say('late')
    await clock.advance(60_000)
    expect(messages).toEqual(['subscribed'])
    expect(lines).toHaveLength(1)
  })
})
