/**
 * Servers behind Sentinels. Before every connection all Sentinels are asked for the master. One of
 * them is also subscribed to, so that a replaced master that is still reachable is left at once.
 */
import type { Clock } from '../../../core/time/clock.js'
import { messageOf } from '../connection/failure-kind.js'
import type { RedisConnection } from '../connection/redis-connection.js'
import { openSubscription } from '../connection/subscription.js'
import type { Connection, Lost } from '../drivers/driver.js'
import type { Login } from '../setup/handshake.js'
import { RedisSetupError, UNREACHABLE_CODE } from '../setup/setup-error.js'
import { type Address, nameOf, type ServerUrl } from './address.js'
import { createDialler, type Dialler, type DiallerOptions, type Wanted } from './dial.js'
import { serverAt } from './one-server.js'
import type { Dialed } from './redial.js'
import { within } from './within.js'

/** How long to wait for the other Sentinels once one has replied. */
const OTHER_ANSWERS_MS = 100
const ANSWER_MS = 1_000
const SENTINEL: Wanted = { expected: 'sentinel' }
const SWITCHED = '+switch-master'

export function connectSentinels(
  urls: readonly ServerUrl[],
  master: string,
  login: Login,
  options: DiallerOptions,
): RedisConnection {
  const { clock, random, warn } = options
  const sentinels = urls.map((url) => {
    const dialler = createDialler(options, { ...url, database: 0 })
    return (lost: Lost) => dialler.dial(url.address, SENTINEL, lost)
  })
  const servers: Dialler = createDialler(options, login)
  let current: string | undefined

  const currentMaster = () =>
    findMaster(sentinels, master, clock).catch((problem: unknown) => {
      if (problem instanceof RedisSetupError) warn(problem.message, UNREACHABLE_CODE)
      throw problem
    })
  const server = serverAt(
    async (wanted, lost) => {
      const address = await currentMaster()
      current = nameOf(address)
      return servers.dial(address, wanted, lost)
    },
    options,
    () => switches.close(),
  )

  function moveTo(name: string): void {
    if (current !== undefined && name !== current)
      server.move(new Error(`the master changed from ${current} to ${name}`))
  }
  let next = 0
  const switches = openSubscription(
    { clock, random, dial: (lost) => sentinels[next++ % sentinels.length]!(lost) },
    SWITCHED,
    {
      onMessage(text) {
        const [name, , , host, port] = text.split(' ')
        if (name === master) moveTo(`${host}:${port}`)
      },
      onSubscribed() {
        currentMaster().then(
          (address) => moveTo(nameOf(address)),
          () => {},
        )
      },
    },
  )
  return server
}

interface Answer {
  address: Address
  /** Grows with every failover, so a Sentinel that was cut off has an older one. */
  epoch: number
}

async function findMaster(
  sentinels: readonly ((lost: Lost) => Promise<Dialed<Connection>>)[],
  master: string,
  clock: Clock,
): Promise<Address> {
  const answers: Answer[] = []
  const problems: unknown[] = []
  await new Promise<void>((resolve) => {
    const settled = () => {
      if (answers.length + problems.length === sentinels.length) resolve()
    }
    for (const dial of sentinels) {
      queryOne(dial, master, clock).then(
        (answer) => {
          if (answers.push(answer) === 1) clock.schedule(OTHER_ANSWERS_MS, resolve).unref()
          settled()
        },
        (problem: unknown) => {
          problems.push(problem)
          settled()
        },
      )
    }
  })
  const [newest] = answers.sort((one, other) => other.epoch - one.epoch)
  if (newest !== undefined) return newest.address
  const setup = problems.find((problem) => problem instanceof RedisSetupError)
  const [cause] = problems
  throw setup ?? new Error(`no Sentinel answers: ${messageOf(cause)}`, { cause })
}

async function queryOne(
  dial: (lost: Lost) => Promise<Dialed<Connection>>,
  master: string,
  clock: Clock,
): Promise<Answer> {
  let giveUp: Lost = () => {}
  const lost = new Promise<never>((_, reject) => {
    giveUp = reject
  })
  const dialed = await dial(giveUp)
  try {
    return await within(ANSWER_MS, clock, Promise.race([lost, queryMaster(dialed, master)]))
  } finally {
    dialed.drop()
  }
}

async function queryMaster(dialed: Dialed<Connection>, master: string): Promise<Answer> {
  await dialed.open()
  const reply = await dialed.client.send(['SENTINEL', 'MASTER', master]).catch((cause: unknown) => {
    if (!messageOf(cause).includes('No such master')) throw cause
    throw new RedisSetupError(
      `no Sentinel knows a master called '${master}': see redis.master`,
      cause,
    )
  })
  const fields = reply as string[]
  const field = (name: string) => fields[fields.indexOf(name) + 1] ?? ''
  return {
    address: { host: field('ip'), port: Number(field('port')) },
    epoch: Number(field('config-epoch')),
  }
}
