import { describe, expect, it } from 'vitest'
import { createVirtualClock } from '../../../testing/virtual-clock.js'
import type { FailureKind } from '../../store-failure.js'
import { createScriptRunner, type RedisClient, type Via } from './runner.js'

const SCRIPT = { name: 'take', sha: 'abc', text: 'return 1' }

type Count = 'aliveChecks' | 'reconnects' | 'closed'

/** A client whose commands wait until the test answers them. */
function setup() {
  const clock = createVirtualClock()
  const sent: {
    args: readonly string[]
    via: Via | undefined
    answer: (reply: unknown) => void
    fail: (error: Error) => void
  }[] = []
  const client: RedisClient & { ready: boolean; problem: unknown } & Record<Count, number> = {
    ready: true,
    problem: undefined,
    aliveChecks: 0,
    reconnects: 0,
    closed: 0,
    send: (args, _key, via) =>
      new Promise((answer, fail) => sent.push({ args: [...args], via, answer, fail })),
    kindOf: (error: unknown) => (error as Error).cause as FailureKind,
    checkAlive() {
      client.aliveChecks++
    },
    reconnect() {
      client.reconnects++
    },
    async close() {
      client.closed++
    },
  }
  const runner = createScriptRunner(client, { commandTimeoutMs: 100, clock })
  const run = () => runner.run(SCRIPT, ['k'], ['a', 2.5])
  return { clock, client, runner, run, sent }
}

const noScript = () => new Error('NOSCRIPT No matching script', { cause: 'server' })
const serverSays = (message: string) => new Error(message, { cause: 'server' })

/** Records how a script ended. */
function outcomeOf(promise: Promise<unknown>): { text: string | undefined } {
  const outcome: { text: string | undefined } = { text: undefined }
  promise.then(
    (reply) => {
      outcome.text = `reply ${reply}`
    },
    (failure) => {
      outcome.text = `${failure.kind}: ${failure.message}`
    },
  )
  return outcome
}

describe('createScriptRunner', () => {
  it('runner sends EVALSHA first and EVAL after NOSCRIPT, with keys and arguments as text', async () => {
    const { clock, run, sent } = setup()
    const reply = run()
    sent[0]?.fail(noScript())
    await clock.settle()
    expect(sent.map(({ args }) => args)).toEqual([
      ['EVALSHA', 'abc', '1', 'k', 'a', '2.5'],
      ['EVAL', 'return 1', '1', 'k', 'a', '2.5'],
    ])
    sent[1]?.answer(7)
    expect(await reply).toBe(7)
  })

  it('runner reports a second NOSCRIPT as a server error', async () => {
    const { clock, run, sent } = setup()
    const outcome = outcomeOf(run())
    sent[0]?.fail(noScript())
    await clock.settle()
    sent[1]?.fail(noScript())
    await clock.settle()
    expect(outcome.text).toBe('server: take: NOSCRIPT No matching script')
    expect(sent).toHaveLength(2)
  })

  it('runner does not rerun a script after its deadline', async () => {
    const { clock, run, sent } = setup()
    const outcome = outcomeOf(run())
    await clock.advance(100)
    expect(outcome.text).toBe('ambiguous: no reply within 100 ms (commandTimeoutMs)')
    sent[0]?.fail(noScript())
    await clock.settle()
    expect(sent).toHaveLength(1)
  })

  it('runner reports not-sent when the connection closes before EVAL could follow', async () => {
    const { client, clock, run, sent } = setup()
    const outcome = outcomeOf(run())
    client.ready = false
    client.problem = new Error('reset')
    sent[0]?.fail(noScript())
    await clock.settle()
    expect(outcome.text).toBe('not-sent: no connection to Redis: reset')
  })

  it('EVALSHA and EVAL share one deadline', async () => {
    const { clock, run, sent } = setup()
    const outcome = outcomeOf(run())
    await clock.advance(60)
    sent[0]?.fail(noScript())
    await clock.advance(39)
    expect(outcome.text).toBeUndefined()
    await clock.advance(1)
    expect(outcome.text).toBe('ambiguous: no reply within 100 ms (commandTimeoutMs)')
  })

  it('commands of each event loop turn have their own deadline', async () => {
    const { clock, run } = setup()
    const first = [outcomeOf(run()), outcomeOf(run())]
    await clock.advance(50)
    const second = outcomeOf(run())
    await clock.advance(50)
    expect(first.map(({ text }) => text?.slice(0, 9))).toEqual(['ambiguous', 'ambiguous'])
    expect(second.text).toBeUndefined()
    await clock.advance(50)
    expect(second.text).toContain('ambiguous')
  })

  it('runner leaves no timer once every command is answered', async () => {
    const { clock, run, sent } = setup()
    const reply = run()
    await clock.advance(1)
    expect(clock.pending).toBe(1)
    sent[0]?.answer(1)
    await reply
    await clock.settle()
    expect(clock.pending).toBe(0)
  })

  it('a reply that misses its deadline makes the runner check the connection', async () => {
    const { client, clock, run } = setup()
    outcomeOf(run())
    await clock.advance(99)
    expect(client.aliveChecks).toBe(0)
    await clock.advance(1)
    expect(client.aliveChecks).toBe(1)
  })

  it('READONLY makes the runner reconnect without rerunning the script', async () => {
    const { client, clock, run, sent } = setup()
    const outcome = outcomeOf(run())
    sent[0]?.fail(serverSays("READONLY You can't write against a read only replica."))
    await clock.settle()
    expect(outcome.text).toMatch(/^server: take: READONLY/)
    expect(client.reconnects).toBe(1)
    expect(sent).toHaveLength(1)
  })

  describe('script runner in a cluster', () => {
    function setupCluster() {
      const all = setup()
      all.client.redirect = (message) => {
        const [word, , node = ''] = message.split(' ')
        return word === 'MOVED' || word === 'ASK' ? { node, asking: word === 'ASK' } : undefined
      }
      return all
    }

    it('runner follows an ASK redirect and sends the script text if that node needs it', async () => {
      const { clock, run, sent } = setupCluster()
      const reply = run()
      sent[0]?.fail(serverSays('ASK 1 other:1'))
      await clock.settle()
      sent[1]?.fail(noScript())
      await clock.settle()
      sent[2]?.answer(7)
      expect(await reply).toBe(7)
      expect(sent.map(({ args, via }) => [args[0], via?.node, via?.asking])).toEqual([
        ['EVALSHA', undefined, undefined],
        ['EVALSHA', 'other:1', true],
        ['EVAL', 'other:1', true],
      ])
    })

    it('runner stops following redirects after five', async () => {
      const { clock, run, sent } = setupCluster()
      const outcome = outcomeOf(run())
      for (let times = 0; times < 20; times++) {
        sent.at(-1)?.fail(serverSays('MOVED 1 other:1'))
        await clock.settle()
      }
      expect(outcome.text).toBe('server: take: MOVED 1 other:1')
      expect(sent).toHaveLength(6)
    })

    it('runner repeats a script on TRYAGAIN until its deadline', async () => {
      const { clock, run, sent } = setupCluster()
      const outcome = outcomeOf(run())
      for (let ms = 0; ms < 150; ms += 10) {
        sent.at(-1)?.fail(serverSays('TRYAGAIN Multiple keys request during rehashing of slot'))
        await clock.advance(10)
      }
      expect(outcome.text).toMatch(/^ambiguous: no reply/)
      expect(sent.length).toBeLessThanOrEqual(11)
    })

    it('runner never sends an ambiguous command to another node', async () => {
      const { clock, run, sent } = setupCluster()
      const outcome = outcomeOf(run())
      sent[0]?.fail(new Error('Connection is closed.', { cause: 'ambiguous' }))
      await clock.settle()
      expect(outcome.text).toBe('ambiguous: take: Connection is closed.')
      expect(sent).toHaveLength(1)
    })
  })

  it('close() waits for commands in flight, at most until their deadline', async () => {
    const { client, clock, run, runner } = setup()
    const outcome = outcomeOf(run())
    const closed = Promise.all([runner.close(), runner.close()])
    const refused = outcomeOf(run())
    await clock.advance(99)
    expect(refused.text).toBe('not-sent: the store is closed')
    expect(client.closed).toBe(0)
    await clock.advance(1)
    expect(outcome.text).toContain('ambiguous')
    await closed
    expect(client.closed).toBe(1)
    expect(clock.pending).toBe(0)
  })
})
