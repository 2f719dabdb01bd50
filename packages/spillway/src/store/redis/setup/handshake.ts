/** The first commands on a connection: login, and reading the server's version and role. */

import { messageOf } from '../connection/failure-kind.js'
import type { Connection } from '../drivers/driver.js'
import { type Expected, judge } from './server-info.js'
import { RedisSetupError, type Warn } from './setup-error.js'

export interface Login {
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
}

/** Rejects if the server refuses the login or does not meet the requirements. */
export async function performHandshake(
  connection: Connection,
  { username, password, database }: Login,
  expected: Expected | 'sentinel',
  name: string,
  warn: Warn,
): Promise<void> {
  const send = async (args: string[]) => {
    try {
      return await connection.send(args)
    } catch (error) {
      throw explain(error, name)
    }
  }
  if (password !== undefined) {
    await send(username === undefined ? ['AUTH', password] : ['AUTH', username, password])
  }
  if (database > 0) await send(['SELECT', String(database)])
  if (expected === 'sentinel') return
  const info = await send(['INFO']).catch((error: unknown) => {
    // Without INFO less is known; problems will be noticed later.
    if (error instanceof Error && /NOPERM/.test(String(error.cause))) return ''
    throw error
  })
  const { problem, warning } = judge(String(info), expected, name)
  if (problem !== undefined) throw problem
  if (warning !== undefined) warn(warning)
}

function explain(cause: unknown, name: string): Error {
  const message = messageOf(cause)
  const problem = (text: string) => new RedisSetupError(`${name} ${text} (${message})`, cause)
  if (message.startsWith('WRONGPASS'))
    return problem('rejected the user name or password; check redis.username and redis.password')
  if (/without any password/.test(message))
    return problem(
      'has no password, but one is configured; remove it from the URL or redis.password',
    )
  if (message.startsWith('NOAUTH')) {
    return problem('requires a password; set it in the URL or as redis.password')
  }
  if (message.startsWith('NOPERM')) return problem('denies this user commands that Spillway needs')
  if (/DB index is out of range/.test(message)) return problem('does not have this database')
  return new Error(`${name}: ${message}`, { cause })
}
