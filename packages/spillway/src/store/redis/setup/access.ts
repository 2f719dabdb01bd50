/**
 * Checks whether the Redis user may do everything that the scripts do, before anything depends on
 * it.
 */

import { refuse } from '../../../core/errors.js'
import type { Keys } from '../../keys.js'
import { messageOf } from '../connection/failure-kind.js'
import { SCRIPTS } from '../scripts.gen.js'
import { RedisSetupError, type Warn } from './setup-error.js'

/** Keys and channels, for the check and for the message about missing permissions. */
export type Access = Pick<Keys, 'prefix' | 'breakers' | 'wakes' | 'check'>

type Failed = [command: string, error: string, channel?: string][]

export async function checkAccess(
  send: (args: string[]) => Promise<unknown>,
  access: Access,
  key: string,
  name: string,
  warn: Warn,
): Promise<void> {
  const { text, sha } = SCRIPTS.checkAccess
  // No worker has this name.
  const wake = `${access.wakes}check`
  const args = ['1', key, access.breakers, wake]
  const fail = (cause: unknown) => refuse(explain(cause, access, name))
  // Tests both commands. The server knows the script when EVALSHA arrives.
  const [, failed] = await Promise.all([
    send(['EVAL', text, ...args]).catch(fail),
    send(['EVALSHA', sha, ...args]).catch(fail),
  ])
  const problem = problemOf(failed as Failed, access, name)
  if (problem !== undefined) throw problem
  // Breakers and jobs work without publishing; other pods only learn of changes a little later.
  for (const [, , channel] of failed as Failed) {
    if (channel === undefined) continue
    const pattern = channel === wake ? `${access.wakes}*` : channel
    warn(missing(['PUBLISH'], `&${pattern}`, name).message)
  }
}

const DENIED = /NOPERM|permission|can't run|can't access|can't publish/

function problemOf(failed: Failed, access: Access, name: string): Error | undefined {
  const needed = failed.filter(([command]) => command !== 'PUBLISH')
  const other = needed.find(([, error]) => !DENIED.test(error))
  if (other !== undefined) return explain(new Error(other[1]), access, name, other[0])
  const [first] = needed
  const commands = needed.map(([command]) => command)
  return first && missing(commands, undefined, name, first[1])
}

function missing(
  commands: readonly string[],
  pattern: string | undefined,
  name: string,
  cause?: unknown,
): RedisSetupError {
  const granted = commands.map((command) => `+${command.toLowerCase()}`)
  if (pattern !== undefined) granted.push(pattern)
  const what = `the user Spillway logs in as may not run ${commands.join(', ')}`
  const on =
    pattern === undefined
      ? ''
      : ` on ${pattern.startsWith('&') ? 'the channel' : 'keys'} ${pattern.slice(1)}`
  return new RedisSetupError(
    `${name}: ${what}${on}. Grant it: ACL SETUSER … ${granted.join(' ')}`,
    cause,
  )
}

/** A pod that may not subscribe polls, and is up to date a little later. */
export function subscribeDenied(warn: Warn): (channel: string) => void {
  return (channel) => warn(missing(['SUBSCRIBE'], `&${channel}`, 'Redis').message)
}

/** A connection that breaks meanwhile is no problem of permissions; other errors are. */
function explain(cause: unknown, access: Access, name: string, within?: string): Error {
  const message = messageOf(cause)
  const command = /'(evalsha|eval)/i.exec(message)?.[1]?.toUpperCase()
  if (/^NOPERM/.test(message)) {
    if (command !== undefined) return missing([command], undefined, name, cause)
    if (/key/.test(message)) return missing(['EVAL'], `~${access.prefix}*`, name, cause)
  }
  if (/READONLY/.test(message)) {
    return new RedisSetupError(`${name} is a read-only replica: name the master`, cause)
  }
  if (/syntax error/.test(message)) {
    const why = `it does not know ${within} … PXAT`
    return new RedisSetupError(`${name} is too old: ${why}, which came with Redis 6.2`, cause)
  }
  // A temporary error, such as out of memory.
  return new Error(`${name}: ${within ?? 'EVAL'}: ${message}`, { cause })
}
