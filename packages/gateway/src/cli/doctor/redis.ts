/** Checks whether Spillway can use the store, and each of its servers. */
import { documentationUrl } from 'spillway/internal'
import type { RedisConfig } from '../../config/config.js'
import { openStore } from '../../shared-store.js'
import { messageOf } from '../operate/fleet-connection.js'
import { isReady } from '../operate/wait-until-ready.js'
import { type Finding, fail, ok, UNREACHABLE, warn } from './finding.js'
import { CHECK_ADDRESS, examineServer } from './redis-server.js'
import { serversOf } from './redis-servers.js'

const SEE_REDIS = `see ${documentationUrl('operations/redis')}`

export async function examineRedis(redis: RedisConfig): Promise<Finding[]> {
  const findings = await examineUse(redis)
  try {
    const { servers, findings: found } = await serversOf(redis)
    findings.push(...found)
    const failed = findings.filter(({ verdict }) => verdict === 'fail')
    for (const server of servers) {
      const ofServer = await examineServer(server, redis)
      // With a single server, the failure of the store is that of the server.
      findings.push(
        ...ofServer.filter(({ message }) => !failed.some((each) => message.endsWith(each.message))),
      )
    }
  } catch (error) {
    const advice = CHECK_ADDRESS
    findings.push(fail('redis', messageOf(error), advice))
  }
  return findings
}

/** Connects and logs in like a gateway, and runs every command that the scripts use. */
async function examineUse(redis: RedisConfig): Promise<Finding[]> {
  const store = openStore({ ...redis, emitWarnings: false })
  try {
    const ready = await isReady(store)
    const warnings = store.warnings.map((each) => warn('permissions', each, SEE_REDIS))
    if (ready) {
      if (warnings.length > 0) return warnings
      return [ok('permissions', 'all that Spillway does is allowed')]
    }
    const why = store.problem === undefined ? 'no answer' : messageOf(store.problem)
    const isSetup = (store.problem as { code?: string } | undefined)?.code === 'REDIS_SETUP'
    const advice = isSetup ? SEE_REDIS : CHECK_ADDRESS
    const other = warnings.filter(({ message }) => !message.includes(why))
    return [fail(isSetup ? 'setup' : UNREACHABLE, why, advice), ...other]
  } finally {
    await store.close()
  }
}
