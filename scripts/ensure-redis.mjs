// Makes sure that a Redis server can be started, for the tests of shared state. On a bare Debian machine, such as CI,
// it installs the package. Sentinels and cluster nodes are the same program with other arguments.

import { canInstall, installPackage, isExecutable, isOnPath } from './debian-package.mjs'

const HOW = `The tests need redis-server (Redis 7 or Valkey), and there is none on the PATH. Install it:
  Debian, Ubuntu   sudo apt-get install redis-server
  macOS            brew install redis
or say where it is: SPILLWAY_REDIS_SERVER=/path/to/redis-server`

/**
 * @param {(line: string) => void} say progress, one line at a time
 * @returns {Promise<string | undefined>} the problem, if no server is available
 */
export async function ensureRedis(say) {
  const given = process.env.SPILLWAY_REDIS_SERVER
  if (given !== undefined) {
    return isExecutable(given) ? undefined : `SPILLWAY_REDIS_SERVER=${given} cannot be executed.`
  }
  if (isOnPath('redis-server')) return undefined
  if (!canInstall()) return HOW
  say('installing redis-server with apt-get (first run only) …')
  const problem = await installPackage('redis-server')
  return problem === undefined ? undefined : `${problem}\n${HOW}`
}
