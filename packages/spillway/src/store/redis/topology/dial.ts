/**
 * Opens connections to servers: connects, logs in, checks the server, and for scripts also the
 * permissions.
 */
import type { ConnectionOptions } from 'node:tls'
import type { Random } from '../../../core/random.js'
import type { Clock } from '../../../core/time/clock.js'
import type { Connection, Driver, Lost } from '../drivers/driver.js'
import { type Access, checkAccess } from '../setup/access.js'
import { type Login, performHandshake } from '../setup/handshake.js'
import type { Expected } from '../setup/server-info.js'
import { RedisSetupError, UNREACHABLE_CODE, type Warn } from '../setup/setup-error.js'
import { type Address, nameOf } from './address.js'
import type { Dialed } from './redial.js'

export interface DiallerOptions {
  driver: Promise<Driver>
  /** TLS options, if TLS is used. */
  tls: ConnectionOptions | undefined
  access: Access
  warn: Warn
  clock: Clock
  random: Random
}

/** Purpose of the connection: commands, scripts, or only requests to a Sentinel. */
export interface Wanted {
  expected: Expected | 'sentinel'
  scripts?: boolean
}

export interface Dialler extends DiallerOptions {
  /** `lost` is called when the connection breaks. */
  dial(address: Address, wanted: Wanted, lost: Lost): Promise<Dialed<Connection>>
}

/** Tag of the key used for checks where any slot will do. */
const TAG = 'check'

export function createDialler(options: DiallerOptions, login: Login): Dialler {
  const { driver, tls, access, warn } = options
  // A missing package is reported when dialling.
  driver.catch(() => {})

  async function open(dialed: Dialed<Connection>, address: Address, wanted: Wanted): Promise<void> {
    const name = nameOf(address)
    await dialed.open()
    await performHandshake(dialed.client, login, wanted.expected, name, warn)
    if (wanted.scripts === true) {
      await checkAccess(dialed.client.send, access, access.check(TAG), name, warn)
    }
  }

  return {
    ...options,
    async dial(address, wanted, lost) {
      const dialed = (await driver).prepare(address, tls, lost)
      return {
        client: dialed.client,
        drop: dialed.drop,
        open: () =>
          open(dialed, address, wanted).catch((problem: unknown) => {
            if (problem instanceof RedisSetupError) warn(problem.message, UNREACHABLE_CODE)
            throw problem
          }),
      }
    },
  }
}
